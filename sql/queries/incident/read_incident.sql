-- name: read_incident
-- One incident: the named one, or the open one where no name is given.
select
    i.incident_id,
    i.name,
    i.opened_at,
    i.resumed_at,
    i.closed_at,
    i.pauses_sweep
from duebook.incident as i
where
    case
        when :name::text is null then i.closed_at is null
        else i.name = :name::text
    end;
