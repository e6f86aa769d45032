-- The first thing that is wrong with a schedule, as {field, reason}; null: nothing. What needs a
-- calendar (whether a rule has any date at all, which holidays there are) the command line tests.
create or replace function duebook.schedule_fault(p_schedule duebook.schedule) returns text[]
language sql
stable
set search_path = ''
as $$
    select array[f.field, f.reason]
    from (
        values
        (1, 'account_id', duebook.name_fault(p_schedule.account_id)),
        (2, 'schedule', duebook.name_fault(p_schedule.schedule)),
        (3, 'account_id', case when p_schedule.account_id = '' then 'empty' end),
        (4, 'schedule', case when p_schedule.schedule = '' then 'empty' end),
        (5, 'kind', case
            when not exists (
                select from duebook.intent_kind as k where k.kind = p_schedule.kind and k.enabled
            ) or p_schedule.kind is null
                then 'expected an enabled kind of duebook.toml'
        end),
        (6, 'channel', case
            when p_schedule.channel is null or not exists (
                select from duebook.intent_kind as k
                where k.channel = p_schedule.channel and k.enabled
            )
                then 'expected a channel that carries an enabled kind: no sender serves another'
        end),
        (7, 'frequency', case
            when p_schedule.frequency in ('weekly', 'monthly') then null
            else 'expected weekly or monthly'
        end),
        (8, 'every', case
            when p_schedule.every between 1 and 1000 then null
            else 'expected a whole number from 1 to 1000'
        end),
        (9, 'weekdays', case
            when p_schedule.weekdays is null and p_schedule.frequency = 'weekly'
                then 'a weekly rule names its weekdays'
            when pg_catalog.cardinality(p_schedule.weekdays) = 0 then 'empty'
            when not p_schedule.weekdays <@ array[1, 2, 3, 4, 5, 6, 7]::smallint[]
                then 'expected ISO weekdays, 1 (Monday) to 7'
        end),
        (10, 'month_day', case
            when p_schedule.month_day is not null and p_schedule.frequency = 'weekly'
                then 'a weekly rule has no day of the month'
            when p_schedule.month_day is not null and p_schedule.weekdays is not null
                then 'a monthly rule has a day of the month or weekdays, not both'
            when p_schedule.month_day not between 1 and 31 and p_schedule.month_day <> -1
                then 'expected 1 to 31, or -1 for the last day'
            when
                p_schedule.frequency = 'monthly'
                and p_schedule.month_day is null
                and p_schedule.weekdays is null
                then 'a monthly rule names a day of the month, or weekdays and which of them'
        end),
        (11, 'nth', case
            when p_schedule.nth is not null and p_schedule.frequency = 'weekly'
                then 'a weekly rule has no nth'
            when p_schedule.nth is not null and p_schedule.weekdays is null
                then 'needs weekdays'
            when
                p_schedule.nth is null
                and p_schedule.frequency = 'monthly'
                and p_schedule.weekdays is not null
                then 'expected which of the weekdays, 1 to 5, or -1 for the last'
            when p_schedule.nth not between 1 and 5 and p_schedule.nth <> -1
                then 'expected 1 to 5, or -1 for the last'
        end),
        (12, 'business_shift', case
            when p_schedule.business_shift in ('none', 'next', 'previous') then null
            else 'expected none, next or previous'
        end),
        (13, 'holiday_calendar', case
            when p_schedule.business_shift = 'none' and p_schedule.holiday_calendar is not null
                then 'only with a business shift'
            when p_schedule.business_shift <> 'none' and p_schedule.holiday_calendar is null
                then 'a business shift needs a calendar of holidays'
        end),
        (14, 'zone', case
            when p_schedule.zone is null then 'empty'
            when not duebook.is_zone_name(p_schedule.zone)
                then 'not a time zone that this server knows'
        end),
        (15, 'wall_time', case
            when p_schedule.wall_time is null then 'empty'
            when p_schedule.wall_time = '24:00' then 'expected 00:00 to 23:59'
            when p_schedule.wall_time <> pg_catalog.date_trunc('minute', p_schedule.wall_time)
                then 'expected whole minutes'
        end),
        (16, 'absent', case
            when p_schedule.absent in ('omit', 'backward', 'forward') then null
            else 'expected omit, backward or forward'
        end),
        (17, 'gap', case
            when p_schedule.gap in ('skip', 'earlier', 'later') then null
            else 'expected skip, earlier or later'
        end),
        (18, 'overlap', case
            when p_schedule.overlap in ('earlier', 'later') then null
            else 'expected earlier or later'
        end),
        (19, 'starts_on', case
            when p_schedule.starts_on is null then 'empty'
            when p_schedule.starts_on not between date '1970-01-01' and date '9000-12-31'
                then 'expected a date from 1970 to 9000'
        end),
        (20, 'ends_on', case
            when p_schedule.ends_on < p_schedule.starts_on then 'before the start'
            when p_schedule.ends_on > date '9000-12-31' then 'expected a date up to 9000'
        end),
        (21, 'count', case
            when p_schedule.occurrence_count not between 1 and 100000
                then 'expected a whole number from 1 to 100000'
        end),
        (22, 'catch_up', case
            when p_schedule.catch_up in ('all', 'latest', 'skip') then null
            else 'expected all, latest or skip'
        end),
        (23, 'catch_up_window', case
            -- Infinity would be taken by PostgreSQL, and read by no sweep.
            when p_schedule.catch_up_window > interval '36525 days' then 'more than 100 years'
            when p_schedule.catch_up_window >= interval '2 minutes' then null
            else 'expected at least two sweeps (2 minutes)'
        end),
        (24, 'max_occurrences', case
            when p_schedule.max_occurrences > 0 then null
            else 'expected a whole number from 1'
        end),
        (25, 'spread_per_minute', case
            when p_schedule.spread_per_minute > 0 then null
            else 'expected a whole number from 1'
        end),
        (26, 'message', duebook.message_fault(p_schedule.message)),
        (27, 'put_by', case when coalesce(p_schedule.put_by, '') = '' then 'empty' end)
    ) as f (position, field, reason)
    where f.reason is not null
    order by f.position
    limit 1;
$$;
comment on function duebook.schedule_fault(duebook.schedule) is
'The first thing that is wrong with a schedule, as {field, reason}; null: nothing.';
