-- name: find_batch_by_token
-- A claim whose acknowledgement was lost: it committed when the batch is there.
select
    b.batch_id,
    b.size
from duebook.batch as b
where b.token = :token::uuid;
