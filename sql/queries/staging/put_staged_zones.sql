-- name: put_staged_zones
-- Enters abbreviations with their regions, then every zone of the server under its own name.
insert into staged_zone (abbreviation, zone, utc_offset)
select
    z.abbreviation,
    z.zone,
    make_interval(secs => z.offset_seconds)
from
    unnest(:abbreviations::text[], :zones::text[], :offset_seconds::integer[])
        as z (abbreviation, zone, offset_seconds)
union all
select
    n.name,
    n.name,
    null
from pg_timezone_names as n
where n.name = any(:names::text[])
on conflict (abbreviation) do nothing;
