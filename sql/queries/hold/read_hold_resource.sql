-- name: read_hold_resource
-- A resource, and what of it is taken now: by the clock.
select
    r.resource,
    r.capacity,
    r.confirmed,
    (
        select coalesce(sum(h.quantity), 0)
        from duebook.hold as h
        where
            h.resource = r.resource
            and h.expires_at > (select clock_timestamp())
            and h.confirmed_at is null
            and h.cancelled_at is null
            and h.expired_at is null
    ) as open
from duebook.hold_resource as r
where r.resource = :resource;
