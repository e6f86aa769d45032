-- name: finish_internal_batch
-- An internal batch, from its rows to its end: holds expire and their promises end together.
select
    f.state,
    f.done,
    f.expired,
    f.skipped,
    f.held
from duebook.finish_internal_batch(
    :batch_id::bigint, :token::uuid, :due_offset::interval
) as f;
