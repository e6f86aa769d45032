-- name: find_version_table
-- Whether a migration ever ran here.
select 1 as found
where to_regclass('duebook.alembic_version') is not null;
