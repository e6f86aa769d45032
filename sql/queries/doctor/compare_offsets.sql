-- name: compare_offsets
-- Zones of which this server's data gives another offset than stated, or none.
select p.zone
from
    unnest(:zones::text[], :instants::timestamptz[], :offsets::integer[])
        as p (
            zone, instant, offset_seconds
        )
where
    p.offset_seconds is distinct from case
        when duebook.is_zone_name(p.zone)
            then
                extract(
                    epoch from (p.instant at time zone p.zone) - (p.instant at time zone 'UTC')
                )::integer
    end
order by p.zone;
