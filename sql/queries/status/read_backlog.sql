-- name: read_backlog
-- What is due now and was not claimed, by the oldest of it, and what comes next.
select
    count(*) filter (where d.due_at <= n.now) as backlog,
    min(d.due_at) filter (where d.due_at <= n.now) as oldest_due_at,
    min(d.due_at) filter (where d.due_at > n.now) as next_due_at
from (select clock_timestamp() as now) as n
left outer join duebook.due as d on true;
