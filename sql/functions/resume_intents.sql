-- Ends a pause, in the caller's transaction: what it held is tested by the next sweeps, which put
-- it back into due, in bounded passes, with the due time that it had. Returns whether there was
-- such a pause, and how many intents are no longer paused by any.
create or replace function duebook.resume_intents(
    p_scope text,
    p_name text,
    p_reason text,
    p_by text
) returns table (was_paused boolean, released bigint)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_pause duebook.pause;
    v_released bigint;
begin
    if
        pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a resume states its reason and who resumes'
            using errcode = 'invalid_parameter_value';
    end if;

    delete from duebook.pause as p
    where p.scope = p_scope and p.name = p_name
    returning p.* into v_pause;
    if not found then
        return query select false, 0::bigint;
        return;
    end if;

    -- Between two tests of a paused row lie up to six hours: those that this ends are tested next,
    -- the oldest first.
    update duebook.held as h
    set retest_at = least(h.due_at, pg_catalog.clock_timestamp())
    where
        h.cause = 'paused'
        and case p_scope
            when 'all' then true
            when 'kind' then h.kind = p_name
            when 'channel' then h.channel = p_name
            when 'account' then h.account_id = p_name
        end
        and duebook.pause_mode(h.account_id, h.kind, h.channel) is distinct from 'hold';
    get diagnostics v_released = row_count;

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'resume', case when p_scope = 'account' then p_name end, p_scope || ':' || p_name,
        pg_catalog.jsonb_build_object(
            'reason', p_reason,
            'mode', v_pause.mode,
            'paused_by', v_pause.paused_by,
            'paused_at', v_pause.paused_at,
            'released', v_released
        )
    );
    return query select true, v_released;
end;
$$;
comment on function duebook.resume_intents(text, text, text, text) is
'Ends a pause: what it held goes back into due by the next sweeps, with the due time that it had. Returns whether it was paused, and how many intents are released.';
