-- name: draft_balance_changes
-- Payments whose status or balance over all provider accounts differs from before, each once: in
-- its booked currency where that changed, else in the one that did. Silent: a payment that only
-- lost an entry, or that has its entries from another payment that was told already, and whatever
-- the withdrawal of a file changes.
with changed as (
    select distinct on (s.account_id, s.payment_id)
        s.*,
        p.amount_minor,
        p.currency = s.currency as is_booked_currency,
        p.expected_at
    from (
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
    ) as s
    inner join duebook.ledger_payment as p
        on s.account_id = p.account_id and s.payment_id = p.payment_id
    where
        s.before_captured_minor <> s.after_captured_minor
        or s.before_refunded_minor <> s.after_refunded_minor
        or s.before_charged_back_minor <> s.after_charged_back_minor
    order by s.account_id, s.payment_id, p.currency = s.currency desc, s.currency
),

lost as (
    select distinct on (m.old_account_id, m.old_payment_id) m.*
    from moved_entry as m
    order by m.old_account_id, m.old_payment_id, m.occurred_at desc, m.entry_id desc
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
    :is_withdrawal::boolean
    or g.entry_id is null
    or (
        not g.is_fresh
        and exists (
            select from moved_entry as m
            where m.is_told and m.account_id = d.account_id and m.payment_id = d.payment_id
        )
    )
from changed as d
left join gained_evidence as g on d.account_id = g.account_id and d.payment_id = g.payment_id
left join lost as l on d.account_id = l.old_account_id and d.payment_id = l.old_payment_id;
