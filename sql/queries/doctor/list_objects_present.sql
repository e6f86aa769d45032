-- name: list_objects_present
-- Names of our functions and views that are there.
select
    'functions' as folder,
    p.proname::text as name
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_namespace as n on p.pronamespace = n.oid
where n.nspname in ('duebook', 'duebook_reports')
union
select
    'views' as folder,
    c.relname::text as name
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
where n.nspname in ('duebook', 'duebook_reports') and c.relkind = 'v';
