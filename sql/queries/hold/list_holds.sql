-- name: list_holds
-- Holds by account or resource and by what they are now, the next to expire first.
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
    h.operation_key
from duebook_reports.holds as h
where
    (:account_id::text is null or h.account_id = :account_id::text)
    and (:resource::text is null or h.resource = :resource::text)
    and (:state::text is null or h.state = :state::text)
order by h.expires_at, h.account_id, h.hold
limit :row_limit::bigint;
