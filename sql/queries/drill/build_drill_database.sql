-- name: build_drill_database
-- The name of a database that no drill has, and the statement that makes it (an identifier can't be
-- a parameter).
select
    n.name,
    format('create database %I', n.name) as statement
from (
    select 'duebook_drill_' || g.number as name
    from generate_series(1, 1000) as g (number)
) as n
where not exists (select 1 from pg_catalog.pg_database as d where d.datname = n.name)
order by random()
limit 1;
