-- name: reset_statement_statistics
-- Profiled runs only: count from here.
select pg_stat_statements_reset();
