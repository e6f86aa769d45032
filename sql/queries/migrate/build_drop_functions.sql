-- name: build_drop_functions
-- The statements that drop every overload of the named functions.
select
    format(
        'drop %s %s',
        case p.prokind when 'p' then 'procedure' else 'function' end,
        p.oid::regprocedure
    ) as statement
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_namespace as n on p.pronamespace = n.oid
where
    n.nspname in ('duebook', 'duebook_reports')
    and p.proname = any(:names::text[])
order by p.oid desc;
