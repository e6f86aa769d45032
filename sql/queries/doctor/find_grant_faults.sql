-- name: find_grant_faults
-- Rights that are not as designed: one line each, no line when all is well. Rights by membership
-- and through PUBLIC count, since that is what a login really has.
with objects as (
    select
        c.oid,
        n.nspname,
        c.relname,
        c.relkind
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
    where n.nspname in ('duebook', 'duebook_reports') and c.relkind in ('r', 'p', 'v', 'm')
),

routines as (
    select
        p.oid,
        p.proname
    from pg_catalog.pg_proc as p
    inner join pg_catalog.pg_namespace as n on p.pronamespace = n.oid
    where n.nspname in ('duebook', 'duebook_reports')
),

roles as (
    select
        r.oid,
        r.rolname,
        r.rolsuper,
        r.rolcreaterole,
        r.rolbypassrls
    from pg_catalog.pg_roles as r
    where r.rolname = any(:roles::text[])
)

select format('%s is missing', w.rolname) as fault
from unnest(:roles::text[]) as w (rolname)
where
    not exists (
        select 1 from roles as r
        where r.rolname = w.rolname
    )
union all
select format('%s is a superuser, may make roles or bypasses row security', r.rolname) as fault
from roles as r
where r.rolsuper or r.rolcreaterole or r.rolbypassrls
union all
select format('duebook_analyst can read %s.%s', o.nspname, o.relname) as fault
from objects as o
cross join roles as r
where
    r.rolname = 'duebook_analyst'
    and o.nspname = 'duebook'
    and (
        has_table_privilege(r.oid, o.oid, 'select')
        or has_any_column_privilege(r.oid, o.oid, 'select')
    )
    and has_schema_privilege(r.oid, 'duebook', 'usage')
union all
select format('duebook_analyst can change %s.%s', o.nspname, o.relname) as fault
from objects as o
cross join roles as r
where
    r.rolname = 'duebook_analyst'
    and has_table_privilege(r.oid, o.oid, 'insert, update, delete, truncate')
union all
select format('duebook_analyst can not read duebook_reports.%s', o.relname) as fault
from objects as o
cross join roles as r
where
    r.rolname = 'duebook_analyst'
    and o.nspname = 'duebook_reports'
    and not has_table_privilege(r.oid, o.oid, 'select')
union all
select format('duebook_reports.%s shows the column %s', o.relname, a.attname) as fault
from objects as o
inner join pg_catalog.pg_attribute as a on o.oid = a.attrelid
where
    o.nspname = 'duebook_reports'
    and a.attnum > 0
    and a.attname in ('address', 'body', 'raw', 'value')
union all
select format('%s can use %s.%s', r.rolname, o.nspname, o.relname) as fault
from objects as o
cross join roles as r
where
    r.rolname in ('duebook_receiver', 'duebook_old_sender')
    and (
        has_table_privilege(r.oid, o.oid, 'select, insert, update, delete, truncate')
        or has_any_column_privilege(r.oid, o.oid, 'select, insert, update')
    )
union all
select format('%s can execute %s', r.rolname, f.oid::regprocedure) as fault
from routines as f
cross join roles as r
where
    (
        (r.rolname = 'duebook_receiver' and f.proname not in ('record_receipt', 'unsubscribe'))
        or (
            r.rolname = 'duebook_old_sender'
            and f.proname not in ('ask_to_send', 'record_observed_send')
        )
    )
    and has_function_privilege(r.oid, f.oid, 'execute')
union all
select format('duebook_app can not write duebook.%s', o.relname) as fault
from objects as o
cross join roles as r
where
    r.rolname = 'duebook_app'
    and o.nspname = 'duebook'
    and o.relname in ('due', 'batch', 'outcome', 'settlement_entry', 'ledger_change')
    and not has_table_privilege(r.oid, o.oid, 'insert')
order by fault;
