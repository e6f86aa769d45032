-- name: close_batch
-- The last statement of a batch's last flush; batch_ended lets its repetition be recognised.
with gone as (
    delete from duebook.batch as b
    where b.batch_id = :batch_id::bigint
    returning
        b.batch_id, b.token, b.sender, b.flush_no, b.size, b.claimed_at, b.safe_retry_until
)

insert into duebook.batch_ended (
    batch_id, token, sender, how, flush_no, size, claimed_at, safe_retry_until
)
select
    g.batch_id,
    g.token,
    g.sender,
    'finished',
    g.flush_no + 1,
    g.size,
    g.claimed_at,
    g.safe_retry_until
from gone as g;
