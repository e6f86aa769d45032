-- name: list_slowest_statements
-- Profiled runs only: where the server's time went, statements inside functions included.
select
    s.total_exec_time as total_ms,
    s.calls,
    s.rows,
    s.wal_bytes,
    s.toplevel as is_toplevel,
    regexp_replace(s.query, '\s+', ' ', 'g') as statement
from pg_stat_statements as s
inner join pg_database as d on s.dbid = d.oid and d.datname = current_database()
order by s.total_exec_time desc
limit 40;
