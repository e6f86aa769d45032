-- name: read_messages
-- PGMQ's `read`: the next messages become invisible to other readers for a while.
with cte as (
    select q.msg_id
    from public.q_bench as q
    where q.vt <= clock_timestamp()
    order by q.msg_id asc
    limit :most::integer
    for update skip locked
)

update public.q_bench as m
set
    vt = clock_timestamp() + interval '120 seconds',
    read_ct = m.read_ct + 1
from cte
where m.msg_id = cte.msg_id
returning m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message;
