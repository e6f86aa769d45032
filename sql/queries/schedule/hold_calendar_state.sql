-- name: hold_calendar_state
-- The same for one who writes: until the transaction ends nobody can bring newer data.
select c.tzdb_version
from duebook.calendar_state as c
for key share;
