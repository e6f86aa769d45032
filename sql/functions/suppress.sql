-- Stops a channel for an account, in the caller's transaction: nothing is sent there until it is
-- lifted. Again it changes nothing, also with another reason. Returns suppressed or known.
create or replace function duebook.suppress(
    p_account_id text,
    p_channel text,
    p_reason text,
    p_by text
) returns text
language plpgsql
set search_path = ''
as $$
begin
    if
        p_account_id is null or p_channel is null
        or pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a suppression names account, channel, reason and who asks for it'
            using errcode = 'invalid_parameter_value';
    end if;
    insert into duebook.suppression (account_id, channel, reason, source)
    values (p_account_id, p_channel, p_reason, 'operator')
    on conflict do nothing;
    if not found then
        return 'known';
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'suppress', p_account_id, p_channel,
        pg_catalog.jsonb_build_object('reason', p_reason)
    );
    return 'suppressed';
end;
$$;
comment on function duebook.suppress(text, text, text, text) is
'Stops a channel for an account. Returns suppressed or known.';
