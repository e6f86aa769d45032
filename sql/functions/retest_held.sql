-- Tests held intents against their cause, at most p_most of those whose turn it is: what is past
-- its limit ends too_late, what can go on is due again, the rest is looked at later.
--
-- A cause that SQL can read (contact, consent, zone, environment, a pause, a conflict) is tested
-- here; a template can only be tested by rendering it, so it goes back to due at growing distances.
-- Poison and a failed rescue wait for a person.
--
-- What is due again is due now, but for what a pause held: that keeps its due time, so that its
-- catch-up policy judges how late it is. A resume marks its rows for the next pass; so that a pass
-- that ran beside it can't put them off again, pauses are locked, and a locked one is not known.
create or replace function duebook.retest_held(p_most integer, p_environment text)
returns table (back_in_due integer, expired integer, tested integer)
language sql
set search_path = ''
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
    with clock as materialized (
        select
            pg_catalog.clock_timestamp() as now,
            duebook.environment_refusal(p_environment) is null as is_environment_accepted
    ),
    picked as materialized (
        select h.*
        from duebook.held as h
        where h.retest_at <= (select c.now from clock as c)
        order by h.retest_at, h.account_id, h.intent_id
        limit p_most
        for update skip locked
    ),
    pauses as materialized (
        select p.scope, p.name
        from duebook.pause as p
        where
            exists (select from picked as h where h.cause = 'paused')
            and (
                p.scope <> 'account'
                or p.name in (select h.account_id from picked as h where h.cause = 'paused')
            )
        for share skip locked
    ),
    certain as materialized (
        select
            (select pg_catalog.count(*) from pauses) = (
                select pg_catalog.count(*)
                from duebook.pause as p
                where
                    p.scope <> 'account'
                    or p.name in (select h.account_id from picked as h where h.cause = 'paused')
            ) as of_pauses
    ),
    judged as materialized (
        select
            p.*,
            f.of_pauses as is_certain,
            i.operation_key,
            i.payment_id,
            i.intended_local,
            i.zone,
            c.now,
            greatest(
                p.claims,
                (
                    select coalesce(pg_catalog.max(a.attempt_no), 0)
                    from duebook.attempt as a
                    where a.account_id = p.account_id and a.intent_id = p.intent_id
                )
            ) as known_claims,
            case
                when exists (
                    select
                    from duebook.outcome as o
                    where o.account_id = p.account_id and o.operation_key = i.operation_key
                ) then 'gone'
                when p.give_up_at <= c.now then 'too_late'
                when p.cause = 'no_contact' and not exists (
                    select
                    from duebook.contact as t
                    where t.account_id = p.account_id and t.channel = p.channel
                ) then 'wait'
                when p.cause = 'zone_unknown' and (
                    not exists (
                        select
                        from duebook.contact as t
                        where
                            t.account_id = p.account_id
                            and t.channel = p.channel
                            and t.imported_at > p.since
                    )
                    or exists (
                        select
                        from duebook.occurrence as e
                        where
                            e.account_id = p.account_id
                            and e.intent_id = p.intent_id
                            and e.due_at is null
                    )
                ) then 'wait'
                when p.cause = 'paused' and (
                    not f.of_pauses
                    or duebook.pause_mode(p.account_id, p.kind, p.channel) = 'hold'
                ) then 'wait'
                when p.cause = 'no_consent' and not exists (
                    select
                    from duebook.consent as n
                    where
                        n.account_id = p.account_id
                        and n.kind in (p.kind, '*')
                        and n.channel in (p.channel, '*')
                ) then 'wait'
                when p.cause = 'kind_unknown' and not exists (
                    select from duebook.intent_kind as k where k.kind = p.kind
                ) then 'wait'
                when p.cause = 'environment' and not c.is_environment_accepted then 'wait'
                when
                    p.cause = 'attempt_conflict'
                    and duebook.is_in_flight(p.account_id, p.intent_id) then 'gone'
                when p.cause in ('poison', 'rescue_failed', 'rule_edited') then 'wait'
                else 'due'
            end as verdict
        from picked as p
        cross join clock as c
        cross join certain as f
        left join duebook.intent as i on p.account_id = i.account_id and p.intent_id = i.intent_id
    ),
    due_again as materialized (
        select
            j.*,
            case
                when j.cause = 'paused' then j.due_at
                else greatest(j.due_at, j.now)
            end as due_again_at,
            case when j.cause = 'paused' then 'resumed' else 'released' end as why
        from judged as j
        where j.verdict = 'due'
    ),
    removed as (
        delete from duebook.held as h
        using judged as j
        where
            h.account_id = j.account_id
            and h.intent_id = j.intent_id
            and (
                j.verdict in ('due', 'gone')
                or (j.verdict = 'too_late' and j.operation_key is not null)
            )
    ),
    postponed as (
        update duebook.held as h
        set
            retest_at = case
                when j.verdict = 'too_late' then j.now + interval '10 minutes'
                when j.cause in ('poison', 'rescue_failed')
                    then least(j.now + interval '10 minutes', j.give_up_at)
                when j.cause = 'paused' and j.is_certain
                    then least(
                        j.now + least(
                            greatest(j.now - j.since, interval '1 minute'), interval '6 hours'
                        ),
                        j.give_up_at
                    )
                else least(j.now + interval '1 minute', j.give_up_at)
            end
        from judged as j
        where
            h.account_id = j.account_id
            and h.intent_id = j.intent_id
            and (j.verdict = 'wait' or (j.verdict = 'too_late' and j.operation_key is null))
    ),
    back as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            j.account_id, j.intent_id, j.due_again_at, j.kind, j.channel, j.give_up_at,
            j.tries, j.known_claims, j.suspicions, j.safe_retry_until
        from due_again as j
        on conflict do nothing
    ),
    released as (
        insert into duebook.intent_change (account_id, intent_id, due_at, reason)
        select j.account_id, j.intent_id, j.due_again_at, j.why
        from due_again as j
    ),
    ended as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at
        )
        select
            j.account_id, j.operation_key, j.intent_id, j.kind, j.payment_id, 'expired', 'too_late',
            j.intended_local, j.zone, j.due_at
        from judged as j
        where j.verdict = 'too_late' and j.operation_key is not null
        order by j.account_id, j.operation_key
        on conflict do nothing
    )
    select
        (pg_catalog.count(*) filter (where j.verdict = 'due'))::integer,
        (pg_catalog.count(*) filter (where j.verdict = 'too_late'))::integer,
        pg_catalog.count(*)::integer
    from judged as j;
$$;
comment on function duebook.retest_held(integer, text) is
'Tests held intents against their cause: due again, ended too_late, or looked at later. Returns how many of each, and of all.';
