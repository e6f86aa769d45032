-- Closes an open incident with its report, in one transaction, unless something speaks against it:
-- then nothing changes, and the report's `refused` says what. Returns the report.
create or replace function duebook.close_incident(p_name text, p_by text) returns jsonb
language plpgsql
set search_path = ''
as $$
declare
    v_incident duebook.incident;
    v_report jsonb;
    v_refused text[];
begin
    select i.* into v_incident
    from duebook.incident as i
    where i.name = p_name
    for update;
    if not found or v_incident.closed_at is not null then
        raise exception 'incident % is not open', p_name
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    v_report := duebook.incident_report(v_incident.incident_id);
    if v_incident.pauses_sweep and v_incident.resumed_at is null then
        v_refused := v_refused || 'not_resumed'::text;
    end if;
    if v_report -> 'differs' <> '{}' then
        v_refused := v_refused || 'differs'::text;
    end if;
    if (v_report ->> 'oldest_due_s')::numeric > (v_report ->> 'band_s')::numeric then
        v_refused := v_refused || 'oldest_due'::text;
    end if;
    if v_refused is not null then
        return v_report || pg_catalog.jsonb_build_object('refused', v_refused);
    end if;

    v_report := v_report || pg_catalog.jsonb_build_object(
        'closed_by', p_by, 'closed_at', v_report -> 'as_of', 'refused', '[]'::jsonb
    );
    update duebook.incident as i
    set
        closed_by = p_by,
        closed_at = (v_report ->> 'closed_at')::timestamptz,
        report = v_report
    where i.incident_id = v_incident.incident_id;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'close_incident', 'incident:' || p_name,
        pg_catalog.jsonb_build_object(
            'due', v_report -> 'due',
            'outcomes', v_report -> 'outcomes',
            'elsewhere', v_report -> 'elsewhere',
            'in_doubt', v_report -> 'in_doubt'
        )
    );
    return v_report;
end;
$$;
comment on function duebook.close_incident(text, text) is
'Closes an open incident with its report, unless something speaks against it, which `refused` then says. Returns the report.';
