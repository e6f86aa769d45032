-- name: pick_schedules
-- Schedules whose next date that is not written is due before `until`, oldest first, locked until
-- the transaction ends: of several sweeps each takes others. Those of a kind that is switched off
-- wait.
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
    s.rule_version,
    s.next_on,
    s.put_at as promised_from,
    null::timestamptz as promised_until
from duebook.schedule as s
where
    s.next_at <= :until::timestamptz
    and s.next_at is not null
    and s.cancelled_at is null
    and exists (
        select from duebook.intent_kind as k
        where k.kind = s.kind and k.enabled
    )
order by s.next_at, s.account_id, s.schedule
limit :most::bigint
for update of s skip locked;
