-- name: read_incident_report
-- The stored report of a closed incident; of an open one what it comes to as of now.
select coalesce(i.report, duebook.incident_report(i.incident_id)) as report
from duebook.incident as i
where i.name = :name::text;
