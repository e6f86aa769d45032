-- name: reject_unreadable_bookings
-- The last guard: a suspect row that no check named and that still is no whole booking.
with unreadable as (
    delete from staged_booking as b
    where
        b.is_suspect
        and num_nulls(
            b.account_id, b.payment_id, b.reference, b.amount_minor, b.currency, b.booked_status,
            b.expected_at
        ) > 0
    returning b.line_no
)

insert into staged_reject (source_no, line_no, reason, expected)
select
    1,
    u.line_no,
    'can''t be read as a whole',
    'a row whose columns are all in their usual form'
from unreadable as u;
