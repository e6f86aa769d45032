-- Promises on a calendar: rules in a named zone, and the occurrences that were written from them.

create table duebook.schedule (
    account_id text not null,
    schedule text not null,
    kind text not null,
    channel text not null,
    frequency text not null,
    every smallint not null,
    weekdays smallint[],
    month_day smallint,
    nth smallint,
    business_shift text not null,
    holiday_calendar text,
    zone text not null,
    wall_time time not null,
    absent text not null,
    gap text not null,
    overlap text not null,
    starts_on date not null,
    ends_on date,
    occurrence_count integer,
    catch_up text not null,
    catch_up_window interval not null,
    max_occurrences integer not null,
    spread_per_minute integer not null,
    message jsonb not null default '{}',
    rule_version integer not null default 1,
    next_on date,
    next_at timestamptz,
    put_at timestamptz not null default clock_timestamp(),
    put_by text not null,
    edited_at timestamptz,
    cancelled_at timestamptz,
    cancelled_by text,
    zone_missing_since timestamptz,
    primary key (account_id, schedule),
    constraint schedule_is_valid check (char_length(schedule) between 1 and 200),
    constraint next_date_has_an_instant check ((next_on is null) = (next_at is null)),
    constraint frequency_is_known check (frequency in ('weekly', 'monthly')),
    constraint every_is_positive check (every between 1 and 1000),
    constraint nth_is_known check (nth is null or nth = -1 or nth between 1 and 5),
    constraint month_day_is_known
    check (month_day is null or month_day = -1 or month_day between 1 and 31),
    constraint days_fit_the_frequency check (
        case frequency
            when 'weekly' then weekdays is not null and month_day is null and nth is null
            else (month_day is not null) <> (weekdays is not null and nth is not null)
        end
    ),
    constraint weekdays_are_known check (weekdays is null or (
        cardinality(weekdays) between 1 and 7
        and weekdays <@ array[1, 2, 3, 4, 5, 6, 7]::smallint[]
    )),
    constraint business_shift_is_known check (business_shift in ('none', 'next', 'previous')),
    constraint shift_has_a_calendar
    check ((business_shift = 'none') = (holiday_calendar is null)),
    constraint absent_is_known check (absent in ('omit', 'backward', 'forward')),
    constraint gap_is_known check (gap in ('skip', 'earlier', 'later')),
    constraint overlap_is_known check (overlap in ('earlier', 'later')),
    constraint ends_on_is_not_before_start check (ends_on is null or ends_on >= starts_on),
    constraint count_is_positive check (occurrence_count is null or occurrence_count > 0),
    constraint schedule_catch_up_is_known check (catch_up in ('all', 'latest', 'skip')),
    constraint schedule_window_is_two_sweeps
    check (catch_up_window between interval '2 minutes' and interval '36525 days'),
    constraint wall_time_is_of_the_day check (wall_time < time '24:00'),
    constraint schedule_max_is_positive check (max_occurrences > 0),
    constraint schedule_spread_is_positive check (spread_per_minute > 0)
);
create index schedule_by_next on duebook.schedule (next_at, account_id, schedule)
where next_at is not null and cancelled_at is null;
create index schedule_edited on duebook.schedule (edited_at, account_id, schedule)
where edited_at is not null;
create index schedule_by_missing_zone on duebook.schedule (zone, account_id, schedule)
where zone_missing_since is not null;
-- A person asks for a schedule by its name alone, and an operation key names no account.
create index schedule_by_name on duebook.schedule (schedule, account_id);
comment on table duebook.schedule is
'A weekly or monthly rule in a named zone. Its occurrences are written ahead of their time by each sweep.';
comment on column duebook.schedule.account_id is 'Customer account that is reminded.';
comment on column duebook.schedule.schedule is 'Name of the schedule, unique for the account; stands in its operation keys.';
comment on column duebook.schedule.kind is 'Kind of notice, see intent_kind.';
comment on column duebook.schedule.channel is 'Channel that carries it.';
comment on column duebook.schedule.frequency is 'weekly or monthly.';
comment on column duebook.schedule.every is 'Every so many weeks or months, counted from starts_on.';
comment on column duebook.schedule.weekdays is 'ISO weekdays, 1 is Monday: of each week, or with nth of each month.';
comment on column duebook.schedule.month_day is 'Day of the month, 1 to 31; -1: the last.';
comment on column duebook.schedule.nth is 'Which of the weekdays in a month, 1 to 5; -1: the last.';
comment on column duebook.schedule.business_shift is 'A date on a weekend or holiday moves to the next or previous business day, or stays (none).';
comment on column duebook.schedule.holiday_calendar is 'Whose holidays count, as the holidays library names them: DE, US-NY, ECB.';
comment on column duebook.schedule.zone is 'IANA zone of the wall time, as it was given.';
comment on column duebook.schedule.wall_time is 'Local time of day.';
comment on column duebook.schedule.absent is 'A date the month does not have (RFC 7529 SKIP): omit, backward or forward.';
comment on column duebook.schedule.gap is 'A local time that the clock skips: skip it, or the instant earlier or later by the gap.';
comment on column duebook.schedule.overlap is 'A local time that comes twice: the earlier or the later.';
comment on column duebook.schedule.starts_on is 'First local date; anchors every.';
comment on column duebook.schedule.ends_on is 'Last local date; null: no end.';
comment on column duebook.schedule.occurrence_count is 'At most so many occurrences from starts_on on; null: no limit.';
comment on column duebook.schedule.catch_up is 'What happens to missed ones: all, latest or skip.';
comment on column duebook.schedule.catch_up_window is 'How old a missed one may be and still be sent.';
comment on column duebook.schedule.max_occurrences is 'At most so many missed ones are sent.';
comment on column duebook.schedule.spread_per_minute is 'Rate while catching up.';
comment on column duebook.schedule.message is 'Texts for the template. No amount, no address.';
comment on column duebook.schedule.rule_version is 'Counts the edits of the rule; occurrences of an older one are computed again.';
comment on column duebook.schedule.next_on is 'Next nominal date that is not written yet; null: none is left.';
comment on column duebook.schedule.next_at is 'When that date is due, as it was computed last; after a put a time before it.';
comment on column duebook.schedule.put_at is 'When its rule was put or last edited. Instants before that are no promise of it.';
comment on column duebook.schedule.put_by is 'Who put it.';
comment on column duebook.schedule.edited_at is 'When its rule was edited, until its unclaimed occurrences are computed again; null: they are.';
comment on column duebook.schedule.cancelled_at is 'When it was cancelled.';
comment on column duebook.schedule.cancelled_by is 'Who cancelled it.';
comment on column duebook.schedule.zone_missing_since is 'Since when its zone is in no time zone database here; its rows are held.';

create table duebook.occurrence (
    account_id text not null,
    schedule text not null,
    nominal_on date not null,
    -- squawk-ignore prefer-timestamp-tz
    intended_local timestamp not null,
    zone text not null,
    case_of text not null,
    due_at timestamptz,
    tzdb_version text not null,
    rule_version integer not null,
    intent_id bigint,
    written_at timestamptz not null default clock_timestamp(),
    primary key (account_id, schedule, nominal_on),
    constraint case_is_known
    check (case_of in ('exact', 'gap', 'overlap', 'absent', 'unknown_zone'))
);
create index occurrence_by_intent on duebook.occurrence (account_id, intent_id);
comment on table duebook.occurrence is 'One nominal date of a schedule, as it was computed last.';
comment on column duebook.occurrence.account_id is 'Customer account.';
comment on column duebook.occurrence.schedule is 'Schedule.';
comment on column duebook.occurrence.nominal_on is 'Date of the rule, before a business-day shift; stands in the operation key.';
comment on column duebook.occurrence.intended_local is 'Local time that was meant.';
comment on column duebook.occurrence.zone is 'Zone of that local time.';
comment on column duebook.occurrence.case_of is 'exact; gap or overlap of the clock; absent: the month has no such day; unknown_zone: no instant yet.';
comment on column duebook.occurrence.due_at is 'UTC instant; null while its zone is unknown.';
comment on column duebook.occurrence.tzdb_version is 'Time zone data that computed it.';
comment on column duebook.occurrence.rule_version is 'Version of the rule that computed it.';
comment on column duebook.occurrence.intent_id is 'Intent that promises it.';
comment on column duebook.occurrence.written_at is 'When it was written.';

create table duebook.schedule_past (
    account_id text not null,
    schedule text not null,
    rule_version integer not null,
    rule jsonb not null,
    ended_at timestamptz not null,
    primary key (account_id, schedule, rule_version)
);
create index schedule_past_by_end on duebook.schedule_past (ended_at, account_id, schedule);
comment on table duebook.schedule_past is
'A rule that was edited while some of its past dates were not written yet: they are still promised. Gone once they are written.';
comment on column duebook.schedule_past.account_id is 'Customer account.';
comment on column duebook.schedule_past.schedule is 'Schedule.';
comment on column duebook.schedule_past.rule_version is 'Version of that rule.';
comment on column duebook.schedule_past.rule is 'The row of the schedule as it was.';
comment on column duebook.schedule_past.ended_at is 'When it was edited: instants from here on are the new rule''s.';

create table duebook.calendar_state (
    only_row boolean primary key default true,
    tzdb_version text not null,
    recorded_at timestamptz not null default clock_timestamp(),
    recorded_by text not null,
    account_id text not null default '',
    intent_id bigint not null default 0,
    recomputed_at timestamptz,
    constraint calendar_state_has_one_row check (only_row)
);
comment on table duebook.calendar_state is
'The newest time zone data that a sweep had here, and how far unclaimed occurrences are computed again with it. A process with older data computes nothing.';
comment on column duebook.calendar_state.only_row is 'Always true: holds the table to one row.';
comment on column duebook.calendar_state.tzdb_version is 'Its IANA version: 2026f.';
comment on column duebook.calendar_state.recorded_at is 'Since when.';
comment on column duebook.calendar_state.recorded_by is 'Which sender brought it.';
comment on column duebook.calendar_state.account_id is 'Account up to which waiting rows were looked at.';
comment on column duebook.calendar_state.intent_id is 'Intent of it up to which they were.';
comment on column duebook.calendar_state.recomputed_at is 'When all of them were; null: it is going on.';
