-- name: list_dictionary
-- Every table and view with its columns, types and comments: the data dictionary is made from it.
select
    n.nspname as schema_name,
    c.relname as table_name,
    case c.relkind when 'v' then 'view' else 'table' end as kind,
    obj_description(c.oid, 'pg_class') as table_comment,
    a.attname as column_name,
    format_type(a.atttypid, a.atttypmod) as type_name,
    a.attnotnull as is_required,
    coalesce(a.attnum = any(k.conkey), false) as is_key,
    col_description(c.oid, a.attnum) as column_comment
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
inner join pg_catalog.pg_attribute as a on c.oid = a.attrelid
left join pg_catalog.pg_constraint as k on c.oid = k.conrelid and k.contype = 'p'
where
    n.nspname in ('duebook', 'duebook_reports')
    and c.relkind in ('r', 'p', 'v')
    and not c.relispartition
    and a.attnum > 0
    and not a.attisdropped
order by n.nspname desc, c.relname, a.attnum;
