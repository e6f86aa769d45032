-- Records the send that an old sender tells by a webhook, in the transaction that stores the
-- receipt: data of the event names account_id, sent_at and operation_key, or kind and payment_id,
-- optionally channel. What can't be read is kept as its receipt, and audited once. Returns whether
-- the endpoint is an old sender's: then there is nothing to read again from a provider.
create or replace function duebook.observe_webhook(
    p_endpoint text,
    p_event_id text,
    p_body bytea
) returns boolean
language plpgsql
set search_path = ''
as $$
declare
    v_sender text;
    v_data jsonb;
    v_fault text;
begin
    select s.sender into v_sender
    from duebook.old_sender as s
    where s.endpoint = p_endpoint;
    if not found then
        return false;
    end if;
    begin
        v_data := pg_catalog.convert_from(p_body, 'UTF8')::jsonb -> 'data';
        insert into duebook.observed_send (
            sender, source, external_id, account_id, operation_key, kind, channel, payment_id,
            sent_at
        )
        values (
            v_sender, 'webhook', p_event_id, v_data ->> 'account_id',
            v_data ->> 'operation_key',
            coalesce(v_data ->> 'kind', duebook.key_kind(v_data ->> 'operation_key')),
            coalesce(
                v_data ->> 'channel',
                pg_catalog.split_part(v_data ->> 'operation_key', ':', 2)
            ),
            v_data ->> 'payment_id',
            -- PostgreSQL takes yesterday, and other words, for instants.
            case
                when
                    duebook.is_time(v_data ->> 'sent_at')
                    and duebook.has_offset(v_data ->> 'sent_at')
                    then (v_data ->> 'sent_at')::timestamptz
            end
        )
        on conflict (sender, external_id) do nothing;
    exception
        when data_exception or integrity_constraint_violation then
            get stacked diagnostics v_fault = returned_sqlstate;
            insert into duebook.audit_event (actor, action, subject, detail)
            values (
                'receiver', 'send_not_readable', v_sender,
                pg_catalog.jsonb_build_object(
                    'endpoint', p_endpoint, 'event_id', p_event_id, 'sqlstate', v_fault
                )
            );
    end;
    return true;
end;
$$;
comment on function duebook.observe_webhook(text, text, bytea) is
'Records the send that an old sender tells by a webhook. Returns whether the endpoint is an old sender''s.';
