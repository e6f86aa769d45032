-- Creates a hold and promises its expiry, in the caller's transaction.
--
-- Its end is p_expires_at, or p_for from now; it never moves. The same hold again with the same
-- content is a no-op, also when it has ended; other content is refused (unique_violation), a full
-- resource too (check_violation, constraint resource_has_room), and a wrong field
-- (invalid_parameter_value, with the field as column).
-- Lock order of all that concerns holds: resource, hold, due row.
create or replace function duebook.create_hold(
    p_account_id text,
    p_hold text,
    p_expires_at timestamptz default null,
    p_for interval default null,
    p_resource text default null,
    p_quantity integer default 1,
    p_payment_id text default null,
    p_by text default session_user
) returns table (done text, expires_at timestamptz, operation_key text)
language plpgsql
set search_path = ''
-- A day is 24 hours, whatever the zone of the session.
set timezone = 'UTC'
as $$
#variable_conflict use_column
declare
    v_fault record;
    v_resource duebook.hold_resource;
    v_hold duebook.hold;
    v_now timestamptz;
    v_expires_at timestamptz;
    v_key text;
    v_is_new boolean := false;
begin
    select f.* into v_fault
    from duebook.hold_fault(
        p_account_id, p_hold, p_expires_at, p_for, p_resource, p_quantity, p_payment_id
    ) as f;
    if found then
        raise exception '%: %', v_fault.field, v_fault.fault
            using errcode = 'invalid_parameter_value', column = v_fault.field;
    end if;
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by)
            using errcode = 'invalid_parameter_value', column = 'by';
    end if;
    if p_resource is not null then
        v_resource := duebook.lock_hold_resource(p_resource);
    end if;

    -- Looked for under the lock: the same creation a moment ago takes no room from this one.
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold;
    if not found then
        v_now := pg_catalog.clock_timestamp();
        v_expires_at := coalesce(p_expires_at, v_now + p_for);
        if v_expires_at <= v_now then
            raise exception 'expires_at: not after now'
                using errcode = 'invalid_parameter_value', column = 'expires_at';
        end if;
        if not duebook.has_room(v_resource, p_quantity, v_now) then
            raise exception 'the resource % has no room for % more', p_resource, p_quantity
                using
                    errcode = 'check_violation',
                    constraint = 'resource_has_room',
                    detail = pg_catalog.format('Its capacity is %s.', v_resource.capacity);
        end if;
        insert into duebook.hold as n (
            account_id, hold, resource, quantity, payment_id, created_at, expires_at, held_for
        )
        values (
            p_account_id, p_hold, p_resource, p_quantity, p_payment_id, v_now, v_expires_at, p_for
        )
        on conflict (account_id, hold) do nothing
        returning n.* into v_hold;
        v_is_new := found;
        if not v_is_new then
            -- Somebody else's, committed a moment ago.
            select h.* into v_hold
            from duebook.hold as h
            where h.account_id = p_account_id and h.hold = p_hold;
        end if;
    end if;

    v_key := duebook.hold_expiry_key(v_hold.hold, v_hold.expires_at);
    if v_is_new then
        perform duebook.promise_hold_expiry(v_hold, v_key, p_by);
    elsif
        v_hold.resource is distinct from p_resource
        or v_hold.quantity <> p_quantity
        or v_hold.payment_id is distinct from coalesce(p_payment_id, v_hold.payment_id)
        or v_hold.held_for is distinct from p_for
        or v_hold.expires_at <> coalesce(p_expires_at, v_hold.expires_at)
        then
        raise exception 'hold % of this account exists with other content', p_hold
            using errcode = 'unique_violation', constraint = 'hold_pkey';
    end if;
    return query
    select
        case when v_is_new then 'created' else 'existed' end,
        v_hold.expires_at,
        v_key;
end;
$$;
comment on function duebook.create_hold(
    text, text, timestamptz, interval, text, integer, text, text
) is
'Creates a hold with a fixed end and promises its expiry. Returns created or existed, its end and its key; other content and a full resource are refused.';
