-- name: resume_intents
-- Ends a pause, for the command line.
select
    r.was_paused,
    r.released
from duebook.resume_intents(:scope::text, :name::text, :reason::text, :by::text) as r;
