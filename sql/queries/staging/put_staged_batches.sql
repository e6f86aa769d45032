-- name: put_staged_batches
-- Enters what an API said about payouts.
insert into staged_batch (batch_ref, is_itemisable, is_complete)
select distinct on (b.batch_ref)
    b.batch_ref,
    b.is_itemisable,
    b.is_complete
from
    unnest(:batch_refs::text[], :itemisable::boolean[], :complete::boolean[])
    with ordinality as b (batch_ref, is_itemisable, is_complete, position)
order by b.batch_ref, b.position desc;
