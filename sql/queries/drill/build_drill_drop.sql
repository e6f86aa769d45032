-- name: build_drill_drop
-- The statement that removes a database that a drill made, whoever is still connected to it.
select format('drop database if exists %I with (force)', :name::text) as statement
where :name::text like 'duebook\_drill\_%';
