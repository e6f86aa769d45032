-- name: put_known_zones
-- Enters the zones of the pinned time zone data.
insert into known_zone (zone)
select z.zone
from unnest(:zones::text[]) as z (zone);
