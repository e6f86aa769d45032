-- name: list_suspect_bookings
-- The fast way laid every row down; only the odd ones are examined.
insert into suspect_row (source_no, line_no)
select
    1,
    b.line_no
from staged_booking as b
where b.is_suspect;
