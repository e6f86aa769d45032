-- name: find_holds_refunded_and_reheld
-- A payment that came after a hold's end got it again, or is refunded, never both.
select
    h.account_id,
    h.hold as operation_key
from duebook.hold as h
where
    num_nonnulls(h.reheld_at, h.refunded_at) = 2
    or (
        h.refunded_at is null
        and exists (
            select from duebook.intent as i
            where
                i.account_id = h.account_id
                and i.subject = concat('hold:', h.hold)
                and i.kind = 'hold_refund'
        )
    )
order by h.account_id, h.hold
limit :row_limit;
