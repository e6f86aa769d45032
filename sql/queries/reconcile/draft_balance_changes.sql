-- name: draft_balance_changes
-- Payments whose status or balance over all provider accounts differs from before, each once: in its
-- booked currency where that changed, else in the one that did. The evidence is the last entry, in
-- source order, that this run applied to the payment. Silent: a payment that only lost an entry, or
-- that got one from another payment that was told already.
with position_after as (
    select
        s.account_id,
        s.payment_id,
        s.currency,
        sum(s.captured_minor)::bigint as captured_minor,
        sum(s.refunded_minor)::bigint as refunded_minor,
        sum(s.charged_back_minor)::bigint as charged_back_minor
    from affected_payment as f
    inner join duebook.settled_position as s
        on f.account_id = s.account_id and f.payment_id = s.payment_id
    group by s.account_id, s.payment_id, s.currency
),

side as (
    select
        account_id,
        payment_id,
        currency,
        coalesce(b.captured_minor, 0) as before_captured_minor,
        coalesce(a.captured_minor, 0) as after_captured_minor,
        coalesce(b.refunded_minor, 0) as before_refunded_minor,
        coalesce(a.refunded_minor, 0) as after_refunded_minor,
        coalesce(b.charged_back_minor, 0) as before_charged_back_minor,
        coalesce(a.charged_back_minor, 0) as after_charged_back_minor
    from position_before as b
    full join position_after as a using (account_id, payment_id, currency)
),

changed as (
    select distinct on (s.account_id, s.payment_id)
        s.*,
        p.amount_minor,
        p.currency = s.currency as is_booked_currency,
        p.expected_at
    from side as s
    inner join duebook.ledger_payment as p
        on s.account_id = p.account_id and s.payment_id = p.payment_id
    where
        (s.before_captured_minor, s.before_refunded_minor, s.before_charged_back_minor)
        is distinct from
        (s.after_captured_minor, s.after_refunded_minor, s.after_charged_back_minor)
    order by s.account_id, s.payment_id, p.currency = s.currency desc, s.currency
),

gained as (
    select distinct on (c.account_id, c.payment_id)
        c.account_id,
        c.payment_id,
        e.entry_id,
        e.version,
        e.occurred_at
    from claim as c
    inner join duebook.settlement_entry as e
        on e.provider_account = :provider_account and c.entry_id = e.entry_id
    where
        c.account_id is not null
        and (
            c.is_applied
            or (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id)
        )
    order by
        c.account_id,
        c.payment_id,
        e.entry_status = 'settled' desc,
        e.source_order desc,
        e.occurred_at desc,
        e.entry_id desc
),

moved as (
    select
        c.old_account_id,
        c.old_payment_id,
        c.account_id,
        c.payment_id,
        e.entry_id,
        e.version,
        e.occurred_at,
        exists (
            select from duebook.intent as i
            where
                i.run_id <> :run_id
                and (
                    (i.account_id, i.payment_id) = (c.old_account_id, c.old_payment_id)
                    or (i.account_id, i.payment_id) = (c.account_id, c.payment_id)
                )
                and i.kind in ('payment_settled', 'payment_refunded', 'payment_disputed')
        ) as is_told
    from claim as c
    inner join duebook.settlement_entry as e
        on e.provider_account = :provider_account and c.entry_id = e.entry_id
    where
        c.old_account_id is not null
        and (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id)
),

lost as (
    select distinct on (m.old_account_id, m.old_payment_id) m.*
    from moved as m
    order by m.old_account_id, m.old_payment_id, m.occurred_at desc, m.entry_id desc
),

handed_over as (
    select
        m.account_id,
        m.payment_id
    from moved as m
    where m.account_id is not null and m.is_told
    group by m.account_id, m.payment_id
),

fresh as (
    select distinct
        c.account_id,
        c.payment_id
    from claim as c
    where
        c.account_id is not null
        and (
            (
                c.is_applied
                and (
                    c.old_account_id is null
                    or (c.old_account_id, c.old_payment_id) = (c.account_id, c.payment_id)
                )
            )
            or (not c.is_applied and c.old_account_id is null)
        )
)

insert into change_draft
select
    d.account_id,
    d.payment_id,
    'balance',
    case
        when d.is_booked_currency
            then duebook.settled_status(
                d.amount_minor, d.before_captured_minor, d.before_refunded_minor,
                d.before_charged_back_minor
            )
        else duebook.settled_status(d.amount_minor, 0, 0, 0)
    end,
    case
        when d.is_booked_currency
            then duebook.settled_status(
                d.amount_minor, d.after_captured_minor, d.after_refunded_minor,
                d.after_charged_back_minor
            )
        else duebook.settled_status(d.amount_minor, 0, 0, 0)
    end,
    d.currency,
    d.before_captured_minor,
    d.after_captured_minor,
    d.before_refunded_minor,
    d.after_refunded_minor,
    d.before_charged_back_minor,
    d.after_charged_back_minor,
    coalesce(g.entry_id, l.entry_id),
    coalesce(g.version, l.version),
    coalesce(g.occurred_at, l.occurred_at, clock_timestamp()),
    0,
    d.expected_at,
    g.entry_id is null or (h.account_id is not null and r.account_id is null)
from changed as d
left join gained as g on d.account_id = g.account_id and d.payment_id = g.payment_id
left join lost as l on d.account_id = l.old_account_id and d.payment_id = l.old_payment_id
left join handed_over as h on d.account_id = h.account_id and d.payment_id = h.payment_id
left join fresh as r on d.account_id = r.account_id and d.payment_id = r.payment_id;
