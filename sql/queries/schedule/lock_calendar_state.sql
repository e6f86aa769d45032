-- name: lock_calendar_state
-- Waits for those who write, so that newer data can be recorded.
select c.tzdb_version
from duebook.calendar_state as c
for update;
