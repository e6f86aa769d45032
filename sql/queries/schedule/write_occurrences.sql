-- name: write_occurrences
-- Promises occurrences: each with its intent, and due, or held while its zone is unknown. Their
-- schedules are locked, so nobody else writes them; a date that was promised before is left alone.
--
-- No part is joined with another: the statement is as fast with no hash join. An unknown zone has
-- no instant; its limit is counted from the latest that the local time can be.
with keyed as materialized (
    select
        w.account_id,
        w.schedule,
        w.nominal_on,
        w.intended_local,
        w.zone,
        w.case_of,
        w.due_at,
        w.rule_version,
        s.kind,
        s.channel,
        k.give_up_after,
        concat_ws(
            ':',
            'remind',
            s.channel,
            duebook.key_part(s.schedule),
            to_char(w.nominal_on, 'YYYY-MM-DD')
        ) as operation_key
    from
        unnest(
            :account_ids::text[],
            :schedules::text[],
            :nominal_ons::date[],
            :intended_locals::timestamp[],
            :zones::text[],
            :cases::text[],
            :due_ats::timestamptz[],
            :rule_versions::integer[]
        ) with ordinality as w (
            account_id,
            schedule,
            nominal_on,
            intended_local,
            zone,
            case_of,
            due_at,
            rule_version,
            position
        )
    inner join duebook.schedule as s on w.account_id = s.account_id and w.schedule = s.schedule
    inner join duebook.intent_kind as k on s.kind = k.kind
    order by w.position
),

wanted as materialized (
    select
        w.account_id,
        w.schedule,
        w.nominal_on,
        w.intended_local,
        w.zone,
        w.case_of,
        w.due_at,
        w.rule_version,
        w.kind,
        w.channel,
        w.operation_key,
        coalesce(w.due_at, w.intended_local at time zone 'UTC') as notify_at,
        coalesce(w.due_at, w.intended_local at time zone 'UTC' + interval '12 hours')
        + w.give_up_after as give_up_at,
        case when w.due_at is not null then :tzdb_version::text end as tzdb_version,
        nextval('duebook.intent_intent_id_seq') as intent_id
    from keyed as w
    where
        not exists (
            select from duebook.intent as i
            where i.account_id = w.account_id and i.operation_key = w.operation_key
        )
),

promised as (
    insert into duebook.intent (
        account_id, intent_id, operation_key, kind, subject, channel, notify_at, give_up_at,
        ownership, intended_local, zone, tzdb_version
    ) overriding system value
    select
        w.account_id,
        w.intent_id,
        w.operation_key,
        w.kind,
        concat('schedule:', w.schedule),
        w.channel,
        w.notify_at,
        w.give_up_at,
        'live',
        w.intended_local,
        w.zone,
        w.tzdb_version
    from wanted as w
),

scheduled as (
    insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
    select
        w.account_id,
        w.intent_id,
        w.due_at,
        w.kind,
        w.channel,
        w.give_up_at
    from wanted as w
    where w.due_at is not null
),

waiting as (
    insert into duebook.held (
        account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims, detail,
        retest_at
    )
    select
        w.account_id,
        w.intent_id,
        'zone_unknown',
        w.notify_at,
        w.kind,
        w.channel,
        w.give_up_at,
        0,
        0,
        w.zone,
        w.give_up_at
    from wanted as w
    where w.due_at is null
),

noted as (
    insert into duebook.occurrence (
        account_id, schedule, nominal_on, intended_local, zone, case_of, due_at, tzdb_version,
        rule_version, intent_id
    )
    select
        w.account_id,
        w.schedule,
        w.nominal_on,
        w.intended_local,
        w.zone,
        w.case_of,
        w.due_at,
        :tzdb_version,
        w.rule_version,
        w.intent_id
    from wanted as w
)

select count(*) as written
from wanted;
