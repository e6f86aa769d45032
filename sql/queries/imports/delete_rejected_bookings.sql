-- name: delete_rejected_bookings
-- Suspect rows that were rejected, or are blank, take no further part.
delete from staged_booking as b
where
    b.is_suspect
    and (
        exists (select from staged_reject as j where j.line_no = b.line_no)
        or not exists (select from suspect_row as q where q.line_no = b.line_no)
    );
