-- name: release_batch_from
-- The end of a batch that its sender does not work to the end: the rest is due again at once.
select r.released
from duebook.release_batch_from(
    :batch_id::bigint, :from_position::integer, 'released'
) as r (released);
