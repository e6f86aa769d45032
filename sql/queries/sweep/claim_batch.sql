-- name: claim_batch
-- One claim: up to batch_size due intents of a channel under a new lease. batch_id is null when
-- there is nothing to claim.
select
    c.batch_id,
    c.size,
    c.set_aside
from duebook.claim_batch(
    :token::uuid,
    :sender::text,
    :channel::text,
    :batch_size::integer,
    :lease::interval,
    :max_age::interval,
    :safe_retry_for::interval,
    :due_offset::interval,
    :alone::boolean
) as c;
