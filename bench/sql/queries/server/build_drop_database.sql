-- name: build_drop_database
-- The statement that drops a database, whoever is connected.
select format('drop database if exists %I with (force)', :name::text);
