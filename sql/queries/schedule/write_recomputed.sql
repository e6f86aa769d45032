-- name: write_recomputed
-- What computing waiting occurrences again came to. Their rows in due and held are locked.
--
-- move: another due time. release: its zone is known again, so it leaves held. hold: its zone is
-- unknown now. keep: nothing but the versions. A later due time has its whole time to give up.
with wanted as materialized (
    select
        w.account_id,
        w.intent_id,
        w.schedule,
        w.nominal_on,
        w.verdict,
        w.row_due_at,
        w.due_at,
        w.intended_local,
        w.zone,
        w.case_of,
        w.rule_version,
        w.row_due_at + (
            select k.give_up_after
            from duebook.schedule as s
            inner join duebook.intent_kind as k on s.kind = k.kind
            where s.account_id = w.account_id and s.schedule = w.schedule
        ) as give_up_at
    from unnest(
        :account_ids::text[],
        :intent_ids::bigint[],
        :schedules::text[],
        :nominal_ons::date[],
        :verdicts::text[],
        :row_due_ats::timestamptz[],
        :due_ats::timestamptz[],
        :intended_locals::timestamp[],
        :zones::text[],
        :cases::text[],
        :rule_versions::integer[]
    ) as w (
        account_id, intent_id, schedule, nominal_on, verdict, row_due_at, due_at,
        intended_local, zone, case_of, rule_version
    )
),

moved_due as (
    update duebook.due as d
    set
        due_at = w.row_due_at,
        give_up_at = greatest(d.give_up_at, w.give_up_at)
    from wanted as w
    where w.verdict = 'move' and d.account_id = w.account_id and d.intent_id = w.intent_id
),

moved_held as (
    update duebook.held as h
    set
        due_at = w.row_due_at,
        give_up_at = greatest(h.give_up_at, w.give_up_at)
    from wanted as w
    where w.verdict = 'move' and h.account_id = w.account_id and h.intent_id = w.intent_id
),

released as (
    insert into duebook.due (
        account_id, intent_id, due_at, kind, channel, give_up_at, tries, claims, suspicions,
        safe_retry_until
    )
    select
        h.account_id,
        h.intent_id,
        w.row_due_at,
        h.kind,
        h.channel,
        greatest(h.give_up_at, w.give_up_at),
        h.tries,
        h.claims,
        h.suspicions,
        h.safe_retry_until
    from wanted as w
    inner join duebook.held as h on w.account_id = h.account_id and w.intent_id = h.intent_id
    where w.verdict = 'release'
),

left_held as (
    delete from duebook.held as h
    using wanted as w
    where w.verdict = 'release' and h.account_id = w.account_id and h.intent_id = w.intent_id
),

caught as (
    insert into duebook.held (
        account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims,
        suspicions, safe_retry_until, detail, retest_at
    )
    select
        d.account_id,
        d.intent_id,
        'zone_unknown',
        d.due_at,
        d.kind,
        d.channel,
        d.give_up_at,
        d.tries,
        d.claims,
        d.suspicions,
        d.safe_retry_until,
        w.zone,
        d.give_up_at
    from wanted as w
    inner join duebook.due as d on w.account_id = d.account_id and w.intent_id = d.intent_id
    where w.verdict = 'hold'
),

left_due as (
    delete from duebook.due as d
    using wanted as w
    where w.verdict = 'hold' and d.account_id = w.account_id and d.intent_id = w.intent_id
),

still_held as (
    update duebook.held as h
    set
        cause = 'zone_unknown',
        detail = w.zone,
        retest_at = h.give_up_at
    from wanted as w
    where
        w.verdict = 'hold'
        and h.account_id = w.account_id
        and h.intent_id = w.intent_id
        and h.cause not in ('poison', 'rescue_failed')
),

changed as (
    insert into duebook.intent_change (account_id, intent_id, due_at, reason, tzdb_version)
    select
        w.account_id,
        w.intent_id,
        w.row_due_at,
        :reason::text,
        :tzdb_version::text
    from wanted as w
    where w.verdict in ('move', 'release')
    order by w.account_id, w.intent_id
),

meant as (
    update duebook.intent as i
    set
        intended_local = w.intended_local,
        zone = w.zone,
        give_up_at = greatest(i.give_up_at, w.give_up_at)
    from wanted as w
    where
        w.verdict in ('move', 'release')
        and i.account_id = w.account_id
        and i.intent_id = w.intent_id
),

noted as (
    update duebook.occurrence as c
    set
        intended_local = w.intended_local,
        zone = w.zone,
        case_of = w.case_of,
        due_at = w.due_at,
        tzdb_version = :tzdb_version,
        rule_version = w.rule_version
    from wanted as w
    where
        c.account_id = w.account_id
        and c.schedule = w.schedule
        and c.nominal_on = w.nominal_on
)

select
    count(*) filter (where w.verdict in ('move', 'release')) as moved,
    count(*) filter (where w.verdict = 'hold') as held
from wanted as w;
