-- name: list_rules
-- Rule and catch-up policy of some schedules.
select
    s.account_id,
    s.schedule,
    s.frequency,
    s.every,
    s.weekdays,
    s.month_day,
    s.nth,
    s.business_shift,
    s.holiday_calendar,
    s.zone,
    s.wall_time,
    s.absent,
    s.gap,
    s.overlap,
    s.starts_on,
    s.ends_on,
    s.occurrence_count,
    s.catch_up,
    s.catch_up_window,
    s.max_occurrences,
    s.spread_per_minute
from unnest(:account_ids::text[], :schedules::text[]) as w (account_id, schedule)
inner join duebook.schedule as s on w.account_id = s.account_id and w.schedule = s.schedule;
