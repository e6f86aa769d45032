-- name: find_batch_end
-- How a batch ended that is gone, and the last flush that was applied to it.
select
    e.how,
    e.flush_no
from duebook.batch_ended as e
where e.batch_id = :batch_id::bigint and e.token = :token::uuid;
