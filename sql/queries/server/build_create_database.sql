-- name: build_create_database
-- The statement that makes a database, or no row when it exists (create database has no
-- "if not exists", and an identifier can't be a parameter).
select format('create database %I', :name::text) as statement
where
    not exists (
        select 1
        from pg_catalog.pg_database
        where datname = :name
    );
