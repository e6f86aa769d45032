-- Lets the sweeps go on under an open incident, and notes what is due at that moment with the
-- policies that will decide about it. Again is a no-op. Returns whether this call did it.
create or replace function duebook.resume_incident(p_name text, p_by text) returns boolean
language plpgsql
set search_path = ''
as $$
declare
    v_incident duebook.incident;
    v_recorded bigint;
begin
    select i.* into v_incident
    from duebook.incident as i
    where i.name = p_name
    for update;
    if not found or v_incident.closed_at is not null then
        raise exception 'incident % is not open', p_name
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    if v_incident.resumed_at is not null then
        return false;
    end if;
    v_recorded := duebook.record_incident_intents(v_incident.incident_id);
    update duebook.incident as i
    set
        resumed_by = p_by,
        resumed_at = pg_catalog.clock_timestamp(),
        policies = duebook.incident_policies(i.incident_id)
    where i.incident_id = v_incident.incident_id;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'resume_incident', 'incident:' || p_name,
        pg_catalog.jsonb_build_object('due_since_it_was_opened', v_recorded)
    );
    return true;
end;
$$;
comment on function duebook.resume_incident(text, text) is
'Lets the sweeps go on under an open incident and notes what is due then. Returns false when that was done before.';
