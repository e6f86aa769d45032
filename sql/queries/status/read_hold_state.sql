-- name: read_hold_state
-- Holds that are open, and those that are expired by the clock and that no sweep has recorded yet.
select
    count(*) filter (where h.expires_at > n.now) as open,
    count(*) filter (where h.expires_at <= n.now) as unswept,
    floor(
        coalesce(max(extract(epoch from n.now - h.expires_at)) filter (
            where h.expires_at <= n.now
        ), 0)
    )::integer as oldest_unswept_s
from duebook.hold as h
cross join (select clock_timestamp() as now) as n
where h.confirmed_at is null and h.cancelled_at is null and h.expired_at is null;
