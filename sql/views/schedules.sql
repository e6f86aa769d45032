-- Schedules with their rule, their policy and how far they are written.
create or replace view duebook_reports.schedules as
select
    s.account_id,
    s.schedule,
    s.kind,
    s.channel,
    case
        when s.cancelled_at is not null then 'cancelled'
        when s.zone_missing_since is not null then 'zone_unknown'
        when s.next_on is null and w.waiting = 0 then 'ended'
        else 'active'
    end as state,
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
    s.spread_per_minute,
    s.rule_version,
    s.next_on,
    w.waiting,
    case when s.cancelled_at is null then w.next_due_at end as next_due_at,
    s.put_at,
    s.put_by,
    s.cancelled_at,
    s.cancelled_by,
    s.zone_missing_since
from duebook.schedule as s
cross join lateral (
    select
        count(*)::integer as waiting,
        min(c.due_at) as next_due_at
    from duebook.occurrence as c
    inner join duebook.intent as i
        on c.account_id = i.account_id and c.intent_id = i.intent_id
    where
        c.account_id = s.account_id
        and c.schedule = s.schedule
        and not exists (
            select from duebook.outcome as o
            where o.account_id = i.account_id and o.operation_key = i.operation_key
        )
) as w;
comment on view duebook_reports.schedules is
'Weekly and monthly rules, their policies and how far they are written. One row per schedule.';
comment on column duebook_reports.schedules.account_id is 'Customer account.';
comment on column duebook_reports.schedules.schedule is 'Name of the schedule, unique in the account.';
comment on column duebook_reports.schedules.kind is 'Kind of notice.';
comment on column duebook_reports.schedules.channel is 'Channel that carries it.';
comment on column duebook_reports.schedules.state is
'active; zone_unknown: its zone is in no time zone data here and its occurrences are held; ended: every occurrence has ended; cancelled.';
comment on column duebook_reports.schedules.frequency is 'weekly or monthly.';
comment on column duebook_reports.schedules.every is 'Every so many weeks or months.';
comment on column duebook_reports.schedules.weekdays is 'ISO weekdays, 1 is Monday.';
comment on column duebook_reports.schedules.month_day is 'Day of the month; -1: the last.';
comment on column duebook_reports.schedules.nth is 'Which of the weekdays in a month; -1: the last.';
comment on column duebook_reports.schedules.business_shift is 'Where a weekend or holiday moves: none, next or previous.';
comment on column duebook_reports.schedules.holiday_calendar is 'Whose holidays count.';
comment on column duebook_reports.schedules.zone is 'IANA zone of the wall time.';
comment on column duebook_reports.schedules.wall_time is 'Local time of day.';
comment on column duebook_reports.schedules.absent is 'A date that a month does not have: omit, backward or forward.';
comment on column duebook_reports.schedules.gap is 'A local time that the clock skips: skip, earlier or later.';
comment on column duebook_reports.schedules.overlap is 'A local time that comes twice: earlier or later.';
comment on column duebook_reports.schedules.starts_on is 'First local date.';
comment on column duebook_reports.schedules.ends_on is 'Last local date.';
comment on column duebook_reports.schedules.occurrence_count is 'At most so many occurrences.';
comment on column duebook_reports.schedules.catch_up is 'What happens to missed ones: all, latest or skip.';
comment on column duebook_reports.schedules.catch_up_window is 'How old a missed one may be and still be sent.';
comment on column duebook_reports.schedules.max_occurrences is 'At most so many missed ones are sent.';
comment on column duebook_reports.schedules.spread_per_minute is 'Rate while catching up.';
comment on column duebook_reports.schedules.rule_version is 'Counts the edits of the rule.';
comment on column duebook_reports.schedules.next_on is 'Next nominal date that is not written yet; null: none is left.';
comment on column duebook_reports.schedules.waiting is 'Occurrences that are written and have no outcome.';
comment on column duebook_reports.schedules.next_due_at is 'When the first of them is due, UTC.';
comment on column duebook_reports.schedules.put_at is 'When its rule was put or last edited.';
comment on column duebook_reports.schedules.put_by is 'Who put it.';
comment on column duebook_reports.schedules.cancelled_at is 'When it was cancelled.';
comment on column duebook_reports.schedules.cancelled_by is 'Who cancelled it.';
comment on column duebook_reports.schedules.zone_missing_since is 'Since when its zone is in no time zone data here.';
