-- name: find_open_incident
-- The open incident, if there is one.
select
    i.name,
    i.opened_by,
    i.opened_at,
    i.reason,
    duebook.sweep_paused_by() is not null as is_sweep_paused
from duebook.incident as i
where i.closed_at is null;
