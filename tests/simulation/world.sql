-- What the simulated world needs of a database beside the product: to begin again, to let time
-- pass, and to see where every key stands.
create schema sim;

-- The key of a hold's expiry names its instant, so it moves with it.
create function sim.rename_holds() returns void
language sql
as $$
    update duebook.outcome as o
    set operation_key = duebook.hold_expiry_key(h.hold, h.expires_at)
    from duebook.hold as h
    where
        o.kind = 'hold_expiry'
        and o.account_id = h.account_id
        and o.intent_id = (
            select i.intent_id from duebook.intent as i
            where i.account_id = h.account_id and i.subject = 'hold:' || h.hold
            and i.kind = 'hold_expiry'
        );
    update duebook.intent as i
    set operation_key = duebook.hold_expiry_key(h.hold, h.expires_at)
    from duebook.hold as h
    where
        i.kind = 'hold_expiry' and i.account_id = h.account_id and i.subject = 'hold:' || h.hold;
$$;

-- Time passes: every instant that is kept moves back, since the server's clock can't be set.
create procedure sim.make_functions()
language plpgsql
as $$
declare
    v_shift text;
    v_clear text;
    v_table text;
    v_is_seeded boolean;
    -- What a new database has rows of is no work: it is neither cleared nor moved.
    v_seeded text[] := '{}';
begin
    for v_table in
        select b.table_name from information_schema.tables as b
        where
            b.table_schema = 'duebook'
            and b.table_type = 'BASE TABLE'
            and b.table_name <> 'audit_event'
    loop
        execute format('select exists (select from duebook.%I)', v_table) into v_is_seeded;
        if v_is_seeded then
            v_seeded := v_seeded || v_table;
        end if;
    end loop;

    select
        string_agg(
            format(
                'if exists (select from %s) then update %s set %s; end if;',
                t.name, t.name, t.columns
            ),
            E'\n'
        )
    into v_shift
    from (
        select
            format('duebook.%I', c.table_name) as name,
            string_agg(
                case
                    when c.data_type = 'ARRAY' then format(
                        '%1$I = array(select x - p_by from unnest(%1$I) with ordinality as u (x, n)'
                        ' order by n)', c.column_name
                    )
                    else format('%1$I = %1$I - p_by', c.column_name)
                end, ', '
            ) as columns
        from information_schema.columns as c
        inner join information_schema.tables as b
            on c.table_schema = b.table_schema and c.table_name = b.table_name
        where
            c.table_schema = 'duebook'
            and b.table_type = 'BASE TABLE'
            and c.is_generated = 'NEVER'
            and (c.data_type = 'timestamp with time zone' or c.udt_name = '_timestamptz')
            and c.table_name <> all(v_seeded)
        group by c.table_name
    ) as t;
    execute format(
        'create function sim.pass(p_by interval) returns void language plpgsql as %L',
        'begin ' || v_shift || ' perform sim.rename_holds(); end'
    );

    select
        string_agg(
            format('if exists (select from %1$s) then delete from %1$s; end if;', t.name), E'\n'
        )
    into v_clear
    from (
        select format('duebook.%I', b.table_name) as name
        from information_schema.tables as b
        where
            b.table_schema = 'duebook'
            and b.table_type = 'BASE TABLE'
            and b.table_name <> all(v_seeded)
        order by b.table_name
    ) as t;
    select
        v_clear || string_agg(format('perform setval(%L, 1, false);', s.oid::regclass), E'\n')
    into v_clear
    from pg_class as s
    where s.relkind = 'S' and s.relnamespace = 'duebook'::regnamespace;
    execute format(
        'create function sim.clear() returns void language plpgsql as %L',
        'begin ' || v_clear || ' end'
    );
end;
$$;
call sim.make_functions();

create view sim.standing as
with in_batch as (
    select w.account_id, w.intent_id
    from duebook.batch as b
    cross join unnest(b.account_ids, b.intent_ids, b.attempt_nos)
        as w (account_id, intent_id, attempt_no)
    where not exists (
        select
        from duebook.attempt_result as r
        where
            r.account_id = w.account_id
            and r.intent_id = w.intent_id
            and r.attempt_no = w.attempt_no
    )
)
select
    case when i.kind = 'hold_expiry' then i.subject else i.operation_key end as operation_key,
    i.account_id,
    i.intent_id,
    array_remove(array[
        case when p.intent_id is not null then 'proposed' end,
        case when d.intent_id is not null then 'due' end,
        case when u.intent_id is not null then 'in_doubt' end,
        case when h.intent_id is not null then 'held' end,
        case when o.intent_id is not null then 'outcome' end
    ], null) || array(
        select 'batch' from in_batch as n
        where n.account_id = i.account_id and n.intent_id = i.intent_id
    ) as places,
    coalesce(h.cause, u.cause) as cause,
    o.result,
    o.reason,
    o.attempt_no,
    (
        select count(*)::integer from duebook.attempt_result as r
        where r.account_id = i.account_id and r.intent_id = i.intent_id and r.result = 'sent'
    ) as known_sent,
    coalesce(d.due_at <= clock_timestamp(), false) as is_overdue
from duebook.intent as i
left join duebook.proposed as p using (account_id, intent_id)
left join duebook.due as d using (account_id, intent_id)
left join duebook.in_doubt as u using (account_id, intent_id)
left join duebook.held as h using (account_id, intent_id)
left join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key;

-- What the product notes when it meets a state that no history may lead to.
create view sim.alarm as
select e.action
from duebook.audit_event as e
where e.action in ('refuse_second_result', 'drop_duplicate_due', 'leave_intent')
union all
select 'dismantle_batch'
from duebook.batch_ended as e
where e.how = 'dismantled'
union all
select 'oversell'
from duebook.hold_resource as r
where r.capacity < (
    select sum(h.quantity) from duebook.hold as h
    where
        h.resource = r.resource
        and duebook.hold_state(h, clock_timestamp()) in ('open', 'confirmed', 'reheld')
);
