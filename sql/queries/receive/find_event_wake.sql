-- name: find_event_wake
-- The newest event whose turn has come, and how many seconds until the next one's.
select
    (
        select max(p.not_before)
        from duebook.pending_event as p
        where p.not_before <= c.now
    ) as newest_wake_at,
    (
        select extract(epoch from min(p.not_before) - c.now)::double precision
        from duebook.pending_event as p
        where p.not_before > c.now
    ) as next_in_s
from (select clock_timestamp() as now) as c;
