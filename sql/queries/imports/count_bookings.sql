-- name: count_bookings
-- Rows of the file, and how many of them are new or changed.
select
    (select count(*) from staged_booking) as told,
    count(*) filter (where c.is_new) as added,
    count(*) filter (where not c.is_new) as changed
from changed_booking as c;
