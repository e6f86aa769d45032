-- name: lock_batch
-- First statement of a flush: the batch, if it still carries the token. Rescue waits meanwhile.
select
    b.flush_no,
    b.mark
from duebook.batch as b
where b.batch_id = :batch_id::bigint and b.token = :token::uuid
for update;
