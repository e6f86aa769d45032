-- name: archive_messages
-- PGMQ's `archive` of many: deleted from the queue and kept beside it.
with archived as (
    delete from public.q_bench as q
    where q.msg_id = any(:msg_ids::bigint[])
    returning q.msg_id, q.vt, q.read_ct, q.enqueued_at, q.message
)

insert into public.a_bench (msg_id, vt, read_ct, enqueued_at, message)
select
    a.msg_id,
    a.vt,
    a.read_ct,
    a.enqueued_at,
    a.message
from archived as a
returning msg_id;
