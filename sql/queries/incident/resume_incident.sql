-- name: resume_incident
-- Lets the sweeps go on, and notes what is due at that moment.
select r.was_paused
from duebook.resume_incident(:name::text, :by::text) as r (was_paused);
