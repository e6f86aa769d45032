-- name: drop_repeated_bookings
-- A payment that a file names more than once stands as its last line says.
delete from staged_booking as b
using (
    select
        l.account_id,
        l.payment_id,
        max(l.line_no) as line_no
    from staged_booking as l
    group by l.account_id, l.payment_id
    having count(*) > 1
) as r
where
    b.account_id = r.account_id
    and b.payment_id = r.payment_id
    and b.line_no < r.line_no;
