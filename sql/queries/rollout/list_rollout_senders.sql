-- name: list_rollout_senders
-- The old senders, with what is known of them.
select
    s.sender,
    s.asks,
    s.same_within,
    n.send_count,
    n.last_sent_at
from duebook.old_sender as s
cross join
    lateral (
        select
            count(*) as send_count,
            max(o.sent_at) as last_sent_at
        from duebook.observed_send as o
        where o.sender = s.sender
    ) as n
order by s.sender;
