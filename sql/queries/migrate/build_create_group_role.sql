-- name: build_create_group_role
-- The statements that make a group role and let its maker act as it: since PostgreSQL 16 who makes
-- a role may only pass it on. (An identifier can't be a parameter.)
select format(statement, :name::text, current_user) as statement
from (values (1, 'create role %1$I nologin'), (2, 'grant %1$I to %2$I')) as s (step, statement)
order by step;
