-- States how much of a resource there is, in the caller's transaction; null: no limit. Less than is
-- taken is allowed: it takes no hold away, and none is made until there is room again.
-- Returns set or unchanged.
create or replace function duebook.set_hold_resource(
    p_resource text,
    p_capacity integer,
    p_by text default session_user
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_before duebook.hold_resource;
    v_is_known boolean;
    v_fault text := duebook.name_fault(nullif(p_resource, ''));
begin
    if v_fault is not null then
        raise exception 'resource: %', v_fault
            using errcode = 'invalid_parameter_value', column = 'resource';
    end if;
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by)
            using errcode = 'invalid_parameter_value', column = 'by';
    end if;
    if p_capacity < 0 then
        raise exception 'capacity: expected 0 or more'
            using errcode = 'invalid_parameter_value', column = 'capacity';
    end if;
    v_is_known := exists (
        select from duebook.hold_resource as r where r.resource = p_resource
    );
    v_before := duebook.lock_hold_resource(p_resource);
    if v_is_known and v_before.capacity is not distinct from p_capacity then
        return 'unchanged';
    end if;
    update duebook.hold_resource as r
    set capacity = p_capacity, updated_at = pg_catalog.clock_timestamp()
    where r.resource = p_resource;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'set_hold_resource', 'resource:' || p_resource,
        pg_catalog.jsonb_build_object('before', v_before.capacity, 'after', p_capacity)
    );
    return 'set';
end;
$$;
comment on function duebook.set_hold_resource(text, integer, text) is
'States how much of a resource there is; null: no limit. Returns set or unchanged.';
