-- Holds a resource until the caller's transaction ends, and returns it. One that nobody named yet
-- has no limit.
--
-- Written and not only locked: what waited here in an isolation level above READ COMMITTED would
-- otherwise count from a snapshot of before, and give away twice what is there once.
create or replace function duebook.lock_hold_resource(p_resource text)
returns duebook.hold_resource
language sql
set search_path = ''
as $$
    insert into duebook.hold_resource as r (resource)
    values (p_resource)
    on conflict (resource) do update set changes = r.changes + 1
    returning r.*;
$$;
comment on function duebook.lock_hold_resource(text) is
'Holds a resource until the transaction ends, and returns it; one not named before has no limit.';
