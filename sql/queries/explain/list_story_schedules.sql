-- name: list_story_schedules
-- Schedules by their name, or those of an account.
select
    r.account_id,
    r.schedule,
    r.kind,
    r.channel,
    r.state,
    r.frequency,
    r.every,
    r.weekdays,
    r.month_day,
    r.nth,
    r.business_shift,
    r.holiday_calendar,
    r.zone,
    r.wall_time,
    r.absent,
    r.gap,
    r.overlap,
    r.starts_on,
    r.ends_on,
    r.occurrence_count,
    r.catch_up,
    r.catch_up_window,
    r.max_occurrences,
    r.spread_per_minute,
    r.rule_version,
    r.next_on,
    r.waiting,
    r.next_due_at,
    r.put_at,
    r.put_by,
    r.cancelled_at,
    r.cancelled_by,
    r.zone_missing_since
from duebook_reports.schedules as r
where r.schedule = :schedule::text or r.account_id = :account_id::text
order by r.account_id, r.schedule
limit :row_limit::bigint;
