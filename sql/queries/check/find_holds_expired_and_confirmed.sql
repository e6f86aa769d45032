-- name: find_holds_expired_and_confirmed
-- A confirmation and an expiry of one hold have one winner; only a payment that came later may hold
-- it again.
select
    h.account_id,
    h.hold as operation_key
from duebook.hold as h
where
    (h.expired_at is not null and h.confirmed_at is not null and h.reheld_at is null)
    or (h.confirmed_at >= h.expires_at and h.reheld_at is null)
order by h.account_id, h.hold
limit :row_limit;
