-- name: write_intents
-- One intent for each enabled kind that a change touches; its key names the evidence, so that it is
-- told once. Evidence older than the account's notify_from is baseline. Ownership is the mode of
-- the account's cohort now, else of the provider account: live goes to due, anything else stays a
-- proposal. Where an old sender asks, a live key is taken first: one that it has stays its own.
with drafted as (
    select
        c.account_id,
        c.payment_id,
        c.change_id,
        k.kind,
        k.channel,
        k.notify_after,
        k.give_up_after,
        case
            when c.change_kind = 'balance'
                then concat_ws(
                    ':',
                    k.kind,
                    k.channel,
                    duebook.key_part(c.provider_account),
                    duebook.key_part(c.payment_id),
                    duebook.key_part(c.entry_id),
                    'v' || c.entry_version
                )
            else concat_ws(
                ':',
                c.change_kind,
                k.channel,
                duebook.key_part(c.provider_account),
                duebook.key_part(c.payment_id),
                to_char(d.expected_at at time zone 'UTC', 'YYYY-MM-DD'),
                c.transition_no
            )
        end as operation_key
    from change_draft as d
    inner join duebook.ledger_change as c
        on
            c.run_id = :run_id
            and d.account_id = c.account_id
            and d.payment_id = c.payment_id
            and d.change_kind = c.change_kind
    cross join
        lateral (
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
    inner join duebook.intent_kind as k on t.kind = k.kind and k.enabled
    where
        t.is_touched
        and not d.is_silent
        and (:notify_from::timestamptz is null or c.evidence_at >= :notify_from::timestamptz)
),

rollout as materialized (
    select
        clock_timestamp() as now,
        exists(select from duebook.cohort) as has_cohorts,
        exists(
            select from duebook.old_sender as s
            where s.asks
        ) as is_asked
),

owned as materialized (
    select
        d.*,
        coalesce(c.cohort_version, 0) as cohort_version,
        duebook.deciding_mode(:mode, c.mode, :notify_from::timestamptz) as mode
    from drafted as d
    left join
        lateral (
            select
                f.cohort_version,
                f.mode
            from duebook.cohort_of(d.account_id, :provider_account) as f
            where (select r.has_cohorts from rollout as r)
        ) as c
        on true
),

taken as (
    insert into duebook.sender_key (account_id, operation_key, sender)
    select
        o.account_id,
        o.operation_key,
        'duebook'
    from owned as o
    where o.mode = 'live' and (select r.is_asked from rollout as r)
    order by o.account_id, o.operation_key
    on conflict do nothing
    returning account_id, operation_key
),

promised as (
    insert into duebook.intent (
        account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
        provider_account, run_id, change_id, ownership, cohort_version
    )
    select
        d.account_id,
        d.operation_key,
        d.kind,
        concat('payment:', d.payment_id),
        d.payment_id,
        d.channel,
        n.now + d.notify_after,
        n.now + d.notify_after + d.give_up_after,
        :provider_account,
        :run_id,
        d.change_id,
        case
            when d.mode = 'live' and n.is_asked and t.operation_key is null then 'shadow'
            else d.mode
        end,
        d.cohort_version
    from owned as d
    cross join rollout as n
    left join taken as t
        on d.account_id = t.account_id and d.operation_key = t.operation_key
    order by d.account_id, d.payment_id, d.kind
    on conflict (account_id, operation_key) do nothing
    returning account_id, intent_id, kind, channel, notify_at, give_up_at, ownership
),

scheduled as (
    insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
    select
        p.account_id,
        p.intent_id,
        p.notify_at,
        p.kind,
        p.channel,
        p.give_up_at
    from promised as p
    where p.ownership = 'live'
),

proposal as (
    insert into duebook.proposed (account_id, intent_id)
    select
        p.account_id,
        p.intent_id
    from promised as p
    where p.ownership <> 'live'
)

select count(*) as intents
from promised;
