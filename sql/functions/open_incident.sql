-- Opens an incident: manual replay is refused until it is closed, and sweeps claim nothing until it
-- is resumed, where p_pauses_sweep. One is open at a time. Returns its identity.
create or replace function duebook.open_incident(
    p_name text,
    p_reason text,
    p_oldest_due_band interval,
    p_pauses_sweep boolean,
    p_by text
) returns bigint
language plpgsql
set search_path = ''
as $$
declare
    v_incident_id bigint;
    v_open text;
    v_recorded bigint;
begin
    insert into duebook.incident (
        name, reason, pauses_sweep, oldest_due_band, opened_by
    )
    values (p_name, p_reason, p_pauses_sweep, p_oldest_due_band, p_by)
    on conflict do nothing
    returning incident_id into v_incident_id;
    if v_incident_id is null then
        select i.name into v_open from duebook.incident as i where i.closed_at is null;
        raise exception '%', coalesce(
            'incident ' || v_open || ' is open; one at a time',
            'an incident named ' || p_name || ' was closed before; names are not used twice'
        )
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    v_recorded := duebook.record_incident_intents(v_incident_id);
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'open_incident', 'incident:' || p_name,
        pg_catalog.jsonb_build_object(
            'reason', p_reason,
            'pauses_sweep', p_pauses_sweep,
            'oldest_due_band', p_oldest_due_band,
            'due', v_recorded
        )
    );
    return v_incident_id;
end;
$$;
comment on function duebook.open_incident(text, text, interval, boolean, text) is
'Opens an incident, one at a time: refuses manual replay, and pauses the sweeps where asked. Returns its identity.';
