-- name: read_calendar_counts
-- Schedules by how they stand, and how long dates that are due have not been written.
select
    count(*) filter (where s.cancelled_at is null and s.next_on is not null) as active,
    count(*) filter (where s.cancelled_at is null and s.zone_missing_since is not null)
        as zone_unknown,
    count(*) filter (where s.cancelled_at is null and s.next_at <= clock_timestamp())
        as unwritten,
    coalesce(
        extract(
            epoch from clock_timestamp()
            - min(s.next_at) filter (where s.cancelled_at is null)
        ),
        0
    )::float8 as oldest_unwritten_s
from duebook.schedule as s;
