-- The intents that follow from the facts alone: ledger changes with the policies that were in force
-- when they committed (kept as audit events), occurrences of schedules, and holds. A run makes the
-- same ones as it commits (write_intents, write_occurrences, create_hold); repeats (resend) and
-- refunds of holds are acts of their own, and not here.
create or replace function duebook.derive_intents()
returns table (
    account_id text,
    intent_id bigint,
    operation_key text,
    kind text,
    subject text,
    payment_id text,
    channel text,
    notify_at timestamptz,
    give_up_at timestamptz,
    provider_account text,
    run_id bigint,
    change_id bigint,
    ownership text,
    cohort_version integer,
    intended_local timestamp,
    zone text,
    tzdb_version text
)
language sql
stable
set search_path = ''
as $$
    with touched as (
        select c.*, t.kind, r.mode
        from duebook.ledger_change as c
        inner join duebook.reconciliation_run as r on c.run_id = r.run_id
        cross join lateral (
            values
            (
                'payment_settled',
                c.change_kind = 'balance' and c.before_captured_minor <> c.after_captured_minor
            ),
            (
                'payment_refunded',
                c.change_kind = 'balance' and c.before_refunded_minor <> c.after_refunded_minor
            ),
            (
                'payment_disputed',
                c.change_kind = 'balance'
                and c.before_charged_back_minor <> c.after_charged_back_minor
            ),
            ('payment_missing', c.change_kind = 'missing'),
            ('payment_cleared', c.change_kind = 'cleared')
        ) as t (kind, is_touched)
        where t.is_touched and not c.is_silent
    ),
    governed as (
        select
            t.*,
            k.stated ->> 'channel' as channel,
            t.committed_at + (k.stated ->> 'notify_after')::interval as notify_at,
            (k.stated ->> 'give_up_after')::interval as give_up_after,
            (a.stated ->> 'notify_from')::timestamptz as notify_from
        from touched as t
        cross join lateral (
            select e.detail -> 'after' as stated
            from duebook.audit_event as e
            where
                e.subject = t.kind
                and e.action = 'apply_kind'
                and e.happened_at <= t.committed_at
            order by e.audit_event_id desc
            limit 1
        ) as k
        cross join lateral (
            select e.detail -> 'after' as stated
            from duebook.audit_event as e
            where
                e.subject = t.provider_account
                and e.action = 'apply_provider_account'
                and e.happened_at <= t.committed_at
            order by e.audit_event_id desc
            limit 1
        ) as a
        where (k.stated ->> 'enabled')::boolean
    )
    select
        g.account_id,
        null::bigint,
        case
            when g.change_kind = 'balance'
                then pg_catalog.concat_ws(
                    ':', g.kind, g.channel, duebook.key_part(g.provider_account),
                    duebook.key_part(g.payment_id), duebook.key_part(g.entry_id),
                    'v' || g.entry_version
                )
            else pg_catalog.concat_ws(
                ':', g.change_kind, g.channel, duebook.key_part(g.provider_account),
                duebook.key_part(g.payment_id),
                pg_catalog.to_char(g.evidence_at at time zone 'UTC', 'YYYY-MM-DD'),
                g.transition_no
            )
        end,
        g.kind,
        'payment:' || g.payment_id,
        g.payment_id,
        g.channel,
        g.notify_at,
        g.notify_at + g.give_up_after,
        g.provider_account,
        g.run_id,
        g.change_id,
        duebook.deciding_mode(g.mode, h.mode, g.notify_from),
        coalesce(h.cohort_version, 0),
        null::timestamp,
        null::text,
        null::text
    from governed as g
    left join lateral duebook.cohort_of(g.account_id, g.provider_account, g.committed_at) as h
        on true
    where g.notify_from is null or g.evidence_at >= g.notify_from
    union all
    select
        o.account_id,
        o.intent_id,
        pg_catalog.concat_ws(
            ':', 'remind', s.channel, duebook.key_part(s.schedule),
            pg_catalog.to_char(o.nominal_on, 'YYYY-MM-DD')
        ),
        s.kind,
        'schedule:' || s.schedule,
        null,
        s.channel,
        coalesce(o.due_at, o.intended_local at time zone 'UTC'),
        coalesce(o.due_at, o.intended_local at time zone 'UTC' + interval '12 hours')
        + k.give_up_after,
        null,
        null,
        null,
        'live',
        0,
        o.intended_local,
        o.zone,
        case when o.due_at is not null then o.tzdb_version end
    from duebook.occurrence as o
    inner join duebook.schedule as s on o.account_id = s.account_id and o.schedule = s.schedule
    inner join duebook.intent_kind as k on s.kind = k.kind
    where o.intent_id is not null
    union all
    select
        d.account_id,
        null,
        duebook.hold_expiry_key(d.hold, d.expires_at),
        'hold_expiry',
        'hold:' || d.hold,
        d.payment_id,
        'internal',
        d.expires_at,
        d.expires_at + interval '100 years',
        null,
        null,
        null,
        'live',
        0,
        null,
        null,
        null
    from duebook.hold as d;
$$;
comment on function duebook.derive_intents() is
'The intents that follow from ledger changes, occurrences and holds, with the policies that were in force then.';
