-- name: read_calendar_state
-- The newest time zone data that any sweep had here, and whether all is computed with it.
select
    c.tzdb_version,
    c.recomputed_at is not null as is_recomputed,
    c.recorded_at,
    c.recorded_by
from duebook.calendar_state as c;
