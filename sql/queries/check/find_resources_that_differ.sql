-- name: find_resources_that_differ
-- What a resource counts as confirmed is the sum of its confirmed holds.
select
    'resource' as account_id,
    r.resource as operation_key
from duebook.hold_resource as r
where
    r.confirmed <> (
        select coalesce(sum(h.quantity), 0)
        from duebook.hold as h
        where h.resource = r.resource and h.confirmed_at is not null
    )
order by r.resource
limit :row_limit;
