-- name: next_due_at
-- When a sweep has something to do next: of each channel with waiting intents the oldest due time,
-- or the end of its pause. One probe of an index a channel; null when nothing waits at all.
with recursive channel as (
    (
        select d.channel from duebook.due as d
        where d.suspicions < 2
        order by d.channel limit 1
    )
    union all
    select
        (
            select d.channel from duebook.due as d
            where d.channel > c.channel and d.suspicions < 2
            order by d.channel limit 1
        ) as channel
    from channel as c
    where c.channel is not null
),

oldest as (
    select
        (
            select d.due_at from duebook.due as d
            where d.channel = c.channel and d.suspicions < 2
            order by d.channel, d.due_at limit 1
        ) as due_at,
        (
            select b.paused_until from duebook.budget as b
            where b.channel = c.channel and b.paused_until > clock_timestamp()
        ) as paused_until
    from channel as c
    where c.channel is not null
)

select
    min(greatest(o.due_at, o.paused_until)) as next_due_at,
    clock_timestamp() as now
from oldest as o;
