-- name: close_incident
-- Closes an incident with its report; the report says what speaks against it, if something does.
select c.report
from duebook.close_incident(:name::text, :by::text) as c (report);
