-- name: list_missing_zones
-- Zones that some sweep did not know, of schedules whose occurrences are held for it.
select distinct s.zone
from duebook.schedule as s
where s.zone_missing_since is not null;
