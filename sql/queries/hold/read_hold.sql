-- name: read_hold
-- One hold as analysts see it, and the key of the notice of its refund, if it made one.
select
    h.account_id,
    h.hold,
    h.resource,
    h.quantity,
    h.payment_id,
    h.state,
    h.created_at,
    h.expires_at,
    h.confirmed_at,
    h.cancelled_at,
    h.expired_at,
    h.reheld_at,
    h.refunded_at,
    h.is_taken,
    h.swept_after_s,
    h.operation_key,
    i.operation_key as refund_key
from duebook_reports.holds as h
left outer join duebook.intent as i
    on h.account_id = i.account_id and i.subject = 'hold:' || h.hold and i.kind = 'hold_refund'
where h.account_id = :account_id and h.hold = :hold;
