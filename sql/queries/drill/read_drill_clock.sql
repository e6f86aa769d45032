-- name: read_drill_clock
-- The clock, for how long leases of batches go on, and when the next row is due.
select
    clock_timestamp() as now,
    coalesce(
        extract(epoch from max(b.lease_until) - clock_timestamp())::float8, 0
    ) as leased_s,
    (
        select extract(epoch from min(d.due_at) - clock_timestamp())::float8
        from duebook.due as d
    ) as next_due_s
from duebook.batch as b;
