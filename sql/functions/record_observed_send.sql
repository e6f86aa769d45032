-- Records that an old sender sent something, in the caller's transaction: by the operation key
-- where it makes them, else by kind, payment and channel. Its own id again with the same content
-- does nothing; with other content it is refused. Returns recorded or known.
create or replace function duebook.record_observed_send(
    p_sender text,
    p_external_id text,
    p_account_id text,
    p_sent_at timestamptz,
    p_operation_key text default null,
    p_kind text default null,
    p_payment_id text default null,
    p_channel text default null
) returns text
language plpgsql
security definer
set search_path = ''
as $$
begin
    if not exists (select from duebook.old_sender as s where s.sender = p_sender) then
        raise exception 'unknown old sender %: state [old_senders.%] in duebook.toml',
            p_sender, p_sender
            using errcode = 'no_data_found';
    end if;
    if p_operation_key is null and (p_kind is null or p_payment_id is null) then
        raise exception 'a send names its operation key, or its kind and payment'
            using errcode = 'invalid_parameter_value', column = 'operation_key';
    end if;

    insert into duebook.observed_send (
        sender, source, external_id, account_id, operation_key, kind, channel, payment_id, sent_at
    )
    values (
        p_sender, 'reported', p_external_id, p_account_id, p_operation_key,
        coalesce(p_kind, duebook.key_kind(p_operation_key)),
        coalesce(p_channel, nullif(pg_catalog.split_part(p_operation_key, ':', 2), '')),
        p_payment_id, p_sent_at
    )
    on conflict do nothing;
    if found then
        return 'recorded';
    end if;
    perform
    from duebook.observed_send as o
    where
        o.sender = p_sender
        and o.external_id = p_external_id
        and o.account_id = p_account_id
        and o.sent_at = p_sent_at
        and o.operation_key is not distinct from p_operation_key
        and (p_payment_id is null or o.payment_id = p_payment_id);
    if not found then
        raise exception 'send % of % was recorded with other content', p_external_id, p_sender
            using errcode = 'unique_violation', column = 'external_id';
    end if;
    return 'known';
end;
$$;
comment on function duebook.record_observed_send(
    text, text, text, timestamptz, text, text, text, text
) is 'Records that an old sender sent something. Returns recorded or known.';
