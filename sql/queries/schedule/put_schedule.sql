-- name: put_schedule
-- Puts a schedule, see the function: put, unchanged, changed or edited.
select
    duebook.put_schedule(
        p_account_id => :account_id,
        p_schedule => :schedule,
        p_kind => :kind,
        p_frequency => :frequency,
        p_zone => :zone,
        p_wall_time => :wall_time::time,
        p_absent => :absent,
        p_gap => :gap,
        p_overlap => :overlap,
        p_starts_on => :starts_on::date,
        p_catch_up => :catch_up,
        p_catch_up_window => :catch_up_window::interval,
        p_max_occurrences => :max_occurrences::integer,
        p_spread_per_minute => :spread_per_minute::integer,
        p_by => :put_by,
        p_weekdays => :weekdays::integer[],
        p_month_day => :month_day::integer,
        p_nth => :nth::integer,
        p_every => :every::integer,
        p_business_shift => :business_shift,
        p_holiday_calendar => :holiday_calendar,
        p_ends_on => :ends_on::date,
        p_count => :count::integer,
        p_message => :message::jsonb,
        p_channel => :channel,
        p_replace => :replace::boolean
    ) as done;
