-- name: read_server
-- Which server this is, its clock, and who asks.
select
    clock_timestamp() as now,
    current_setting('server_version') as version,
    current_database() as database_name,
    current_user::text as login,
    current_setting('TimeZone') as zone;
