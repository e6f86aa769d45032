-- name: lift_incident_pause
-- Inside a preview's transaction: as if the open incident were resumed now.
update duebook.incident as i
set resumed_at = clock_timestamp(), resumed_by = 'preview'
where i.closed_at is null and i.resumed_at is null
returning i.name;
