-- name: settle_schedules
-- Their unclaimed occurrences are computed again.
update duebook.schedule as s
set
    edited_at = null,
    zone_missing_since = case
        when w.is_zone_known then null
        else coalesce(s.zone_missing_since, clock_timestamp())
    end
from
    unnest(
        :account_ids::text[], :schedules::text[], :are_zones_known::boolean[]
    ) as w (account_id, schedule, is_zone_known)
where s.account_id = w.account_id and s.schedule = w.schedule;
