-- name: pick_past_rules
-- Rules that were edited while some of their dates were due and not written: those are still
-- promised, up to the edit. The schedule is locked, too: the new rule may have the same date.
select
    p.account_id,
    p.schedule,
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
    p.rule_version,
    r.next_on,
    r.put_at as promised_from,
    p.ended_at as promised_until
from duebook.schedule_past as p
inner join duebook.schedule as s on p.account_id = s.account_id and p.schedule = s.schedule
cross join lateral jsonb_populate_record(null::duebook.schedule, p.rule) as r
order by p.ended_at, p.account_id, p.schedule
limit :most::bigint
for update of p, s skip locked;
