-- Pauses all intents, or those of one kind, channel or account, in the caller's transaction. Each
-- sender reads it before its next window. Returns paused, changed (it was paused with another mode
-- or reason) or unchanged. Holds expire all the same: nothing pauses them.
create or replace function duebook.pause_intents(
    p_scope text,
    p_name text,
    p_mode text,
    p_reason text,
    p_by text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_before duebook.pause;
    v_done text;
begin
    if
        pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a pause states its reason and who pauses'
            using errcode = 'invalid_parameter_value';
    end if;
    if p_scope is null or p_scope not in ('all', 'kind', 'channel', 'account') then
        raise exception 'scope: %; expected all, kind, channel or account',
            coalesce(p_scope, 'empty')
            using errcode = 'invalid_parameter_value';
    end if;
    if (p_scope = 'all') <> (p_name = '*') or p_name is null then
        raise exception 'name: %; expected * for all, else the name of a kind, channel or account',
            coalesce(p_name, 'empty')
            using errcode = 'invalid_parameter_value';
    end if;
    if p_mode is null or p_mode not in ('hold', 'drop') then
        raise exception 'mode: %; expected hold or drop', coalesce(p_mode, 'empty')
            using errcode = 'invalid_parameter_value';
    end if;
    if (p_scope, p_name) in (('channel', 'internal'), ('kind', 'hold_expiry')) then
        raise exception 'holds always expire: % % can not be paused', p_scope, p_name
            using errcode = 'invalid_parameter_value';
    end if;

    insert into duebook.pause (scope, name, mode, reason, paused_by)
    values (p_scope, p_name, p_mode, p_reason, p_by)
    on conflict do nothing;
    if found then
        v_done := 'paused';
    else
        select p.* into v_before
        from duebook.pause as p
        where p.scope = p_scope and p.name = p_name
        for update;
        if (v_before.mode, v_before.reason) is not distinct from (p_mode, p_reason) then
            return 'unchanged';
        end if;
        v_done := 'changed';
        update duebook.pause as p
        set mode = p_mode, reason = p_reason, paused_by = p_by
        where p.scope = p_scope and p.name = p_name;
    end if;

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'pause', case when p_scope = 'account' then p_name end, p_scope || ':' || p_name,
        pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'mode', p_mode, 'reason', p_reason, 'mode_before', v_before.mode
            )
        )
    );
    return v_done;
end;
$$;
comment on function duebook.pause_intents(text, text, text, text, text) is
'Pauses all intents, or those of one kind, channel or account, with mode hold or drop. Returns paused, changed or unchanged.';
