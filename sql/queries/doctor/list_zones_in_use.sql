-- name: list_zones_in_use
-- Zones in which reports count days.
select distinct a.zone
from duebook.provider_account as a
order by a.zone;
