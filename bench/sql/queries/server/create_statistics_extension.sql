-- name: create_statistics_extension
-- Profiled runs only.
create extension if not exists pg_stat_statements;
