-- name: read_clock
-- The database's clock, before a provider is asked anything.
select clock_timestamp() as now;
