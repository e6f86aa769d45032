-- name: list_story_holds
-- Holds by their name, or those of some payments of an account, and what they are by the clock.
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
where h.hold = :hold::text
union all
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
where h.account_id = :account_id::text and h.payment_id = any(:payment_ids::text[])
order by account_id, created_at, hold
limit :row_limit::bigint;
