-- name: list_open_occurrences
-- Occurrences by their intents, with the rule of their schedule as it is now.
select
    c.account_id,
    c.schedule,
    c.nominal_on,
    c.intended_local,
    c.zone as was_zone,
    c.case_of,
    c.due_at,
    c.rule_version as was_rule_version,
    c.intent_id,
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
    s.rule_version
from unnest(:account_ids::text[], :intent_ids::bigint[]) as w (account_id, intent_id)
inner join duebook.occurrence as c
    on w.account_id = c.account_id and w.intent_id = c.intent_id
inner join duebook.schedule as s
    on c.account_id = s.account_id and c.schedule = s.schedule
where s.cancelled_at is null;
