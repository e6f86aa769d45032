-- Puts a schedule, in the caller's transaction: the rule only; sweeps write its occurrences.
--
-- The same content again is a no-op (unchanged). Other content is refused unless p_replace: a
-- change of policy or message alone counts for whatever is not claimed (changed); an edit of the
-- rule makes the next sweep compute unclaimed occurrences again (edited); a cancelled schedule
-- starts again (put). Kind and channel stand in what was promised and can't be changed.
--
-- Raises invalid_parameter_value with the field (detail and column) and the reason, and
-- unique_violation for other content without p_replace.
create or replace function duebook.put_schedule(
    p_account_id text,
    p_schedule text,
    p_kind text,
    p_frequency text,
    p_zone text,
    p_wall_time time,
    p_absent text,
    p_gap text,
    p_overlap text,
    p_starts_on date,
    p_catch_up text,
    p_catch_up_window interval,
    p_max_occurrences integer,
    p_spread_per_minute integer,
    p_by text,
    p_weekdays integer[] default null,
    p_month_day integer default null,
    p_nth integer default null,
    p_every integer default 1,
    p_business_shift text default 'none',
    p_holiday_calendar text default null,
    p_ends_on date default null,
    p_count integer default null,
    p_message jsonb default '{}',
    p_channel text default null,
    p_replace boolean default false
) returns text
language plpgsql
set search_path = ''
as $$
declare
    c_state constant text[] := array[
        'rule_version', 'next_on', 'next_at', 'put_at', 'put_by', 'edited_at', 'cancelled_at',
        'cancelled_by', 'zone_missing_since'
    ];
    c_policy constant text[] := array[
        'catch_up', 'catch_up_window', 'max_occurrences', 'spread_per_minute', 'message'
    ];
    v_now timestamptz := pg_catalog.clock_timestamp();
    v_old duebook.schedule;
    v_new duebook.schedule;
    v_fault text[];
    v_before jsonb;
    v_after jsonb;
    v_done text := 'put';
begin
    v_new.account_id := p_account_id;
    v_new.schedule := p_schedule;
    v_new.kind := p_kind;
    v_new.channel := coalesce(
        p_channel, (select k.channel from duebook.intent_kind as k where k.kind = p_kind)
    );
    v_new.frequency := p_frequency;
    -- Out of smallint's range is a fault of the field, not of the cast.
    v_new.every := case when p_every between 0 and 1001 then p_every else 0 end;
    v_new.weekdays := (
        select pg_catalog.array_agg(distinct case when d between 0 and 8 then d else 0 end)
        from unnest(p_weekdays) as w (d)
    );
    if p_weekdays is not null and v_new.weekdays is null then
        v_new.weekdays := '{}';
    end if;
    v_new.month_day := case
        when p_month_day is null or p_month_day between -1 and 31 then p_month_day
        else 0
    end;
    v_new.nth := case when p_nth is null or p_nth between -1 and 5 then p_nth else 0 end;
    v_new.business_shift := p_business_shift;
    v_new.holiday_calendar := p_holiday_calendar;
    v_new.zone := p_zone;
    v_new.wall_time := p_wall_time;
    v_new.absent := p_absent;
    v_new.gap := p_gap;
    v_new.overlap := p_overlap;
    v_new.starts_on := p_starts_on;
    v_new.ends_on := p_ends_on;
    v_new.occurrence_count := p_count;
    v_new.catch_up := p_catch_up;
    v_new.catch_up_window := p_catch_up_window;
    v_new.max_occurrences := p_max_occurrences;
    v_new.spread_per_minute := p_spread_per_minute;
    v_new.message := coalesce(p_message, '{}');
    v_new.put_by := p_by;
    v_fault := duebook.schedule_fault(v_new);
    if v_fault is not null then
        raise exception 'schedule: %: %', v_fault[1], v_fault[2]
            using errcode = 'invalid_parameter_value', detail = v_fault[1], column = v_fault[1];
    end if;

    v_new.rule_version := 1;
    v_new.put_at := v_now;
    v_new.next_on := greatest(p_starts_on, (v_now at time zone p_zone)::date);
    -- The first sweep computes it; a shift to an earlier business day stays within two weeks.
    v_new.next_at := greatest(v_now, (v_new.next_on - 15)::timestamp at time zone 'UTC');

    -- Of two at once one inserts, and the other one sees its row.
    insert into duebook.schedule as s select v_new.* on conflict do nothing;
    if found then
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        values (
            p_by, 'put_schedule', p_account_id, 'schedule:' || p_schedule,
            pg_catalog.jsonb_build_object('after', pg_catalog.to_jsonb(v_new) - c_state - 'message')
        );
        return 'put';
    end if;

    select s.* into strict v_old
    from duebook.schedule as s
    where s.account_id = p_account_id and s.schedule = p_schedule
    for update;
    v_now := pg_catalog.clock_timestamp();
    v_before := pg_catalog.to_jsonb(v_old) - c_state;
    v_after := pg_catalog.to_jsonb(v_new) - c_state;
    if v_old.cancelled_at is null and v_before = v_after then
        return 'unchanged';
    end if;
    if not p_replace then
        raise exception 'schedule: % of account % %', p_schedule, p_account_id, case
            when v_old.cancelled_at is null then 'was put with other content'
            else 'was cancelled'
        end
            using
                errcode = 'unique_violation',
                detail = coalesce((
                    select pg_catalog.string_agg(a.key, ', ' order by a.key)
                    from pg_catalog.jsonb_each(v_after) as a
                    where a.value is distinct from v_before -> a.key
                ), 'cancelled_at'),
                hint = 'replace it, or take another name';
    end if;
    if v_old.kind <> v_new.kind or v_old.channel <> v_new.channel then
        raise exception 'schedule: %: stands in what was promised already',
            case when v_old.kind <> v_new.kind then 'kind' else 'channel' end
            using
                errcode = 'invalid_parameter_value',
                detail = case when v_old.kind <> v_new.kind then 'kind' else 'channel' end,
                hint = 'cancel it and put another one';
    end if;

    v_new.put_at := v_now;
    v_new.rule_version := v_old.rule_version;
    v_new.edited_at := v_old.edited_at;
    if v_old.cancelled_at is not null then
        v_new.rule_version := v_old.rule_version + 1;
    elsif v_before - c_policy = v_after - c_policy then
        v_done := 'changed';
        v_new.put_at := v_old.put_at;
        v_new.next_on := v_old.next_on;
        v_new.next_at := v_old.next_at;
        v_new.zone_missing_since := v_old.zone_missing_since;
    else
        v_done := 'edited';
        v_new.rule_version := v_old.rule_version + 1;
        v_new.edited_at := v_now;
        if v_old.next_at <= v_now then
            -- Nobody swept for longer than the horizon: those dates are still the old rule's.
            insert into duebook.schedule_past (account_id, schedule, rule_version, rule, ended_at)
            values (
                p_account_id, p_schedule, v_old.rule_version, pg_catalog.to_jsonb(v_old), v_now
            );
        end if;
    end if;
    update duebook.schedule as s
    set
        frequency = v_new.frequency,
        every = v_new.every,
        weekdays = v_new.weekdays,
        month_day = v_new.month_day,
        nth = v_new.nth,
        business_shift = v_new.business_shift,
        holiday_calendar = v_new.holiday_calendar,
        zone = v_new.zone,
        wall_time = v_new.wall_time,
        absent = v_new.absent,
        gap = v_new.gap,
        overlap = v_new.overlap,
        starts_on = v_new.starts_on,
        ends_on = v_new.ends_on,
        occurrence_count = v_new.occurrence_count,
        catch_up = v_new.catch_up,
        catch_up_window = v_new.catch_up_window,
        max_occurrences = v_new.max_occurrences,
        spread_per_minute = v_new.spread_per_minute,
        message = v_new.message,
        rule_version = v_new.rule_version,
        next_on = v_new.next_on,
        next_at = v_new.next_at,
        put_at = v_new.put_at,
        put_by = v_new.put_by,
        edited_at = v_new.edited_at,
        cancelled_at = null,
        cancelled_by = null,
        zone_missing_since = v_new.zone_missing_since
    where s.account_id = p_account_id and s.schedule = p_schedule;
    if v_done = 'edited' then
        perform duebook.hold_edited(p_account_id, p_schedule, v_now);
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by,
        case v_done when 'put' then 'put_schedule' else v_done || '_schedule' end,
        p_account_id,
        'schedule:' || p_schedule,
        pg_catalog.jsonb_build_object(
            'before', v_before - 'message',
            'after', v_after - 'message',
            'message_changed', v_before -> 'message' is distinct from v_after -> 'message'
        )
    );
    return v_done;
end;
$$;
comment on function duebook.put_schedule(
    text, text, text, text, text, time, text, text, text, date, text, interval, integer, integer,
    text, integer[], integer, integer, integer, text, text, date, integer, jsonb, text, boolean
) is
'Puts a schedule. Returns put, unchanged, changed (policy or message) or edited (the rule); other content is refused without p_replace.';
