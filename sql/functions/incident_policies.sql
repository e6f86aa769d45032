-- The catch-up policies that decide about what an incident noted, as they stand now: one of each
-- kind of notice, and one of each group of schedules that have the same, with the first twenty of
-- their names.
create or replace function duebook.incident_policies(p_incident_id bigint) returns jsonb
language sql
stable
set search_path = ''
as $$
    with involved as (
        select
            i.account_id,
            i.kind,
            i.channel,
            case
                when i.subject like 'schedule:%' then pg_catalog.substr(i.subject, 10)
            end as schedule
        from duebook.incident_intent as n
        inner join duebook.intent as i on n.account_id = i.account_id and n.intent_id = i.intent_id
        where n.incident_id = p_incident_id
    ),
    applied as (
        select
            v.kind,
            s.schedule is not null as is_scheduled,
            coalesce(s.catch_up, k.catch_up) as catch_up,
            coalesce(s.catch_up_window, k.catch_up_window) as catch_up_window,
            coalesce(s.max_occurrences, k.max_occurrences) as max_occurrences,
            coalesce(s.spread_per_minute, k.spread_per_minute) as spread_per_minute,
            pg_catalog.count(*) as intents,
            pg_catalog.count(distinct (s.account_id, s.schedule))
            filter (where s.schedule is not null) as schedules,
            (
                pg_catalog.array_agg(
                    distinct s.account_id || '/' || s.schedule
                    order by s.account_id || '/' || s.schedule
                ) filter (where s.schedule is not null)
            )[1:20] as schedule_names
        from involved as v
        left join duebook.schedule as s
            on v.account_id = s.account_id and v.schedule = s.schedule
        left join duebook.intent_kind as k on v.kind = k.kind
        where v.channel <> 'internal'
        group by 1, 2, 3, 4, 5, 6
        union all
        select v.kind, false, 'always', null, null, null, pg_catalog.count(*), 0, null
        from involved as v
        where v.channel = 'internal'
        group by v.kind
    )
    select
        coalesce(
            pg_catalog.jsonb_agg(
                pg_catalog.jsonb_build_object(
                    'kind', a.kind,
                    'schedules', a.schedules,
                    'schedule_names', pg_catalog.to_jsonb(coalesce(a.schedule_names, '{}')),
                    'intents', a.intents,
                    'catch_up', a.catch_up,
                    'catch_up_window_s', extract(epoch from a.catch_up_window)::bigint,
                    'max_occurrences', a.max_occurrences,
                    'spread_per_minute', a.spread_per_minute
                )
                order by
                    a.kind, a.schedules, a.catch_up, a.catch_up_window, a.max_occurrences,
                    a.spread_per_minute
            ),
            '[]'
        )
    from applied as a;
$$;
comment on function duebook.incident_policies(bigint) is
'The catch-up policies that decide about what an incident noted, of kinds and schedules, as they stand now.';
