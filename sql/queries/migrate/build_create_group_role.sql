-- name: build_create_group_role
-- The statement that makes a group role (an identifier can't be a parameter).
select format('create role %I nologin', :name::text) as statement;
