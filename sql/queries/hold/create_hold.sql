-- name: create_hold
-- Creates a hold and promises its expiry; the same again is a no-op, other content is refused.
select
    c.done,
    c.expires_at,
    c.operation_key
from duebook.create_hold(
    :account_id::text,
    :hold::text,
    :expires_at::timestamptz,
    :hold_for::interval,
    :resource::text,
    :quantity::integer,
    :payment_id::text,
    :by::text
) as c;
