-- name: store_incident_samples
-- Keeps how the backlog fell, for the report.
update duebook.incident as i
set samples = i.samples || :samples::jsonb
where i.incident_id = :incident_id::bigint and i.closed_at is null;
