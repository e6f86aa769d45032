-- name: list_views
-- Our views that are still there, each with something that depends on it.
select
    c.oid::regclass::text as view_name,
    coalesce(
        (
            select r.ev_class::regclass::text
            from pg_catalog.pg_depend as d
            inner join pg_catalog.pg_rewrite as r on d.objid = r.oid
            where
                d.classid = 'pg_catalog.pg_rewrite'::regclass
                and d.refclassid = 'pg_catalog.pg_class'::regclass
                and d.refobjid = c.oid
                and r.ev_class <> c.oid
                and not r.ev_class::regclass::text = any(:names::text[])
            order by 1
            limit 1
        ),
        'another object'
    ) as dependant
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
where
    c.relkind = 'v'
    and n.nspname in ('duebook', 'duebook_reports')
    and c.relname = any(:names::text[])
order by 1;
