-- name: list_function_signatures
-- Every overload of a function.
select pg_get_function_identity_arguments(p.oid) as arguments
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_namespace as n on p.pronamespace = n.oid
where n.nspname = :schema and p.proname = :name;
