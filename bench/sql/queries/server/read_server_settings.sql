-- name: read_server_settings
-- The server's version and what it says its settings are.
select
    s.name,
    current_setting(s.name) as value,
    current_setting('server_version') as version
from pg_settings as s
where s.name = any(:names::text[])
order by s.name;
