-- name: find_suspect_booking
-- Whether the fast way met anything odd.
select exists(select from staged_booking as b where b.is_suspect) as is_found;
