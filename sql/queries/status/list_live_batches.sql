-- name: list_live_batches
-- Batches that a sender holds, or held when it was last heard of.
select
    b.batch_id,
    b.sender,
    b.channel,
    b.size,
    b.mark,
    b.claimed_at,
    b.lease_until,
    b.lease_until < clock_timestamp() as is_lapsed
from duebook.batch as b
order by b.lease_until
limit :row_limit::bigint;
