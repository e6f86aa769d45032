-- Lets a channel reach an account again, in the caller's transaction. What ended meanwhile stays
-- ended. Returns lifted, or known where nothing was suppressed.
create or replace function duebook.lift_suppression(
    p_account_id text,
    p_channel text,
    p_why text,
    p_by text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_gone duebook.suppression;
begin
    if
        pg_catalog.btrim(coalesce(p_why, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'lifting a suppression names why and who asks for it'
            using errcode = 'invalid_parameter_value';
    end if;
    delete from duebook.suppression as s
    where s.account_id = p_account_id and s.channel = p_channel
    returning s.* into v_gone;
    if not found then
        return 'known';
    end if;
    -- The time of its failures starts anew.
    delete from duebook.failing_contact as f
    where f.account_id = p_account_id and f.channel = p_channel;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'lift_suppression', p_account_id, p_channel,
        pg_catalog.jsonb_build_object(
            'why', p_why,
            'reason', v_gone.reason,
            'source', v_gone.source,
            'suppressed_at', v_gone.suppressed_at
        )
    );
    return 'lifted';
end;
$$;
comment on function duebook.lift_suppression(text, text, text, text) is
'Lets a channel reach an account again. Returns lifted or known.';
