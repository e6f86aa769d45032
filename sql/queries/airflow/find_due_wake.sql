-- name: find_due_wake
-- One look of the trigger that wakes due_sweep: the newest instant at which work became claimable
-- (a row fell due, or the pause of its channel ended), and the seconds until the next such instant.
-- Three probes of the index due_by_time for each channel that has rows, whatever the table's size.
with recursive channel as (
    (
        select due.channel
        from duebook.due as due
        where due.suspicions < 2
        order by due.channel
        limit 1
    )
    union all
    select (
        select due.channel
        from duebook.due as due
        where
            due.channel > channel.channel
            and due.suspicions < 2
        order by due.channel
        limit 1
    ) as channel
    from channel
    where channel.channel is not null
)

select
    case
        -- Nothing to wake for: an incident pauses the sweeps.
        when duebook.sweep_paused_by() is null
            then max(wake.at) filter (where wake.at <= clock.at)
    end as newest_wake_at,
    extract(epoch from min(wake.at) filter (where wake.at > clock.at) - clock.at)::float8
        as next_in_s
from (select clock_timestamp() as at) as clock
cross join channel
left outer join duebook.budget as budget on channel.channel = budget.channel
cross join
    lateral (
        (
            select due.due_at
            from duebook.due as due
            where
                due.channel = channel.channel
                and due.due_at <= clock.at
                and due.suspicions < 2
            order by due.channel desc, due.due_at desc, due.intent_id desc
            limit 1
        )
        union all
        (
            select due.due_at
            from duebook.due as due
            where
                due.channel = channel.channel
                and due.due_at > clock.at
                and due.suspicions < 2
            order by due.channel, due.due_at, due.intent_id
            limit 1
        )
    ) as nearest
cross join lateral (select greatest(nearest.due_at, budget.paused_until) as at) as wake
group by clock.at;
