-- name: find_due_wake
-- One look of the trigger that wakes due_sweep: the newest due time that has passed (it announces
-- each but once), and the seconds until the next one. Each is one probe of the index due_by_time.
select
    (
        select due.due_at
        from duebook.due as due
        where due.due_at <= clock.at
        order by due.due_at desc
        limit 1
    ) as newest_due_at,
    (
        select extract(epoch from due.due_at - clock.at)::float8
        from duebook.due as due
        where due.due_at > clock.at
        order by due.due_at
        limit 1
    ) as next_in_s
from (select clock_timestamp() as at) as clock;
