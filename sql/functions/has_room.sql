-- Whether a resource, which the caller has locked, has room for p_quantity more at p_at: confirmed
-- holds and open ones that are not expired by the clock are taken, unswept ones are not.
create or replace function duebook.has_room(
    p_resource duebook.hold_resource,
    p_quantity integer,
    p_at timestamptz
) returns boolean
language sql
stable
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select
        p_resource.capacity is null
        or p_resource.confirmed + p_quantity + coalesce(
            (
                select pg_catalog.sum(h.quantity)
                from duebook.hold as h
                where
                    h.resource = p_resource.resource
                    and h.expires_at > p_at
                    and h.confirmed_at is null
                    and h.cancelled_at is null
                    and h.expired_at is null
            ),
            0
        ) <= p_resource.capacity;
$$;
comment on function duebook.has_room(duebook.hold_resource, integer, timestamptz) is
'Whether a locked resource has room for so much more; a hold that is expired by the clock takes none.';
