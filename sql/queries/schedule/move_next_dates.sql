-- name: move_next_dates
-- How far each schedule is written now; null: nothing is left. A zone that is unknown is noted.
update duebook.schedule as s
set
    next_on = w.next_on,
    next_at = w.next_at,
    zone_missing_since = case
        when w.is_zone_known then s.zone_missing_since
        else coalesce(s.zone_missing_since, clock_timestamp())
    end
from
    unnest(
        :account_ids::text[],
        :schedules::text[],
        :next_ons::date[],
        :next_ats::timestamptz[],
        :are_zones_known::boolean[]
    ) as w (account_id, schedule, next_on, next_at, is_zone_known)
where s.account_id = w.account_id and s.schedule = w.schedule;
