-- name: build_drop_free_views
-- The statements that drop those of our views on which no other view depends. Repeated until there
-- is none, it takes the views down in dependency order without ever dropping somebody else's.
select format('drop view %s', c.oid::regclass) as statement
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
where
    c.relkind = 'v'
    and n.nspname in ('duebook', 'duebook_reports')
    and c.relname = any(:names::text[])
    and not exists (
        select 1
        from pg_catalog.pg_depend as d
        inner join pg_catalog.pg_rewrite as r on d.objid = r.oid
        where
            d.classid = 'pg_catalog.pg_rewrite'::regclass
            and d.refclassid = 'pg_catalog.pg_class'::regclass
            and d.refobjid = c.oid
            and r.ev_class <> c.oid
    );
