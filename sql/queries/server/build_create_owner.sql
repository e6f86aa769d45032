-- name: build_create_owner
-- The statement that makes the owner of the databases: no superuser, so that what only works for
-- one shows locally and not first on a hosted server. `password` is a scram verifier.
select format(
    'create role %I with login createdb createrole password %L', :name::text, :password::text
) as statement;
