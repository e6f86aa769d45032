-- name: find_role
-- Whether the server knows this role.
select 1 as found
from pg_catalog.pg_roles
where rolname = :name;
