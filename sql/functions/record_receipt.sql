-- Stores one verified webhook, in the caller's transaction. All that the role duebook_receiver may
-- do, so it runs with the owner's rights and trusts nothing but its arguments.
--
-- Returns stored (the first of its endpoint and event id), duplicate (the same body again) or
-- differs (another body under that id: kept, audited once, and never acted upon). The provider may
-- be answered once this has committed, whichever it was.
create or replace function duebook.record_receipt(
    p_endpoint text,
    p_event_id text,
    p_provider_account text,
    p_scheme text,
    p_headers jsonb,
    p_body bytea
) returns text
language plpgsql
security definer
set search_path = ''
as $$
declare
    v_digest bytea := pg_catalog.sha256(p_body);
begin
    -- A 2xx promises that the event survives a crash, however lax the server is set otherwise.
    if pg_catalog.current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
        perform pg_catalog.set_config('synchronous_commit', 'on', true);
    end if;

    insert into duebook.webhook_receipt (
        endpoint, event_id, provider_account, scheme, body_sha256
    )
    values (p_endpoint, p_event_id, p_provider_account, p_scheme, v_digest)
    on conflict do nothing;
    if found then
        insert into duebook.webhook_body (endpoint, event_id, body_sha256, headers, body)
        values (p_endpoint, p_event_id, v_digest, p_headers, p_body);
        if duebook.observe_webhook(p_endpoint, p_event_id, p_body) then
            return 'stored';
        end if;
        -- Two endpoints may tell one event: it is read once for its provider account.
        insert into duebook.pending_event (provider_account, event_id, endpoint)
        select p_provider_account, p_event_id, p_endpoint
        where not exists (
            select
            from duebook.event_effect as e
            where e.provider_account = p_provider_account and e.event_id = p_event_id
        )
        on conflict do nothing;
        return 'stored';
    end if;

    if exists (
        select
        from duebook.webhook_receipt as r
        where
            r.endpoint = p_endpoint
            and r.event_id = p_event_id
            and r.body_sha256 = v_digest
    ) then
        return 'duplicate';
    end if;

    insert into duebook.webhook_body (endpoint, event_id, body_sha256, headers, body)
    values (p_endpoint, p_event_id, v_digest, p_headers, p_body)
    on conflict do nothing;
    if found then
        insert into duebook.audit_event (actor, action, subject, detail)
        values (
            'receiver',
            'webhook_body_differs',
            p_provider_account,
            pg_catalog.jsonb_build_object(
                'endpoint', p_endpoint,
                'event_id', p_event_id,
                'body_sha256', pg_catalog.encode(v_digest, 'hex')
            )
        );
    end if;
    return 'differs';
end;
$$;
comment on function duebook.record_receipt(text, text, text, text, jsonb, bytea) is
'Stores one verified webhook. Returns stored, duplicate, or differs (same id, another body).';
