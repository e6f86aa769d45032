-- name: list_roles
-- Which of the named roles exist.
select rolname::text as role_name
from pg_catalog.pg_roles
where rolname = any(:names::text[]);
