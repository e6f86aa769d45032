-- name: drop_overtaken_transitions
-- Read after the lock: a payment that another provider account has just settled is not missing.
-- What could not be locked, or is overtaken, is left as it stands until the next run.
with overtaken as (
    delete from transition as t
    where
        not t.is_locked
        or (
            t.transition = 'missing'
            and exists (
                select from duebook.settled_position as s
                where s.account_id = t.account_id and s.payment_id = t.payment_id
            )
        )
    returning t.transition, t.account_id, t.payment_id
),

unfound as (
    delete from finding as f
    using overtaken as o
    where
        o.transition = 'missing'
        and f.kind = 'missing_at_provider'
        and f.account_id = o.account_id
        and f.payment_id = o.payment_id
)

insert into finding (
    kind, subject, account_id, payment_id, provider_minor, ledger_minor, currency, detail, severity
)
select
    d.kind,
    d.subject,
    d.account_id,
    d.payment_id,
    d.provider_minor,
    d.ledger_minor,
    d.currency,
    d.detail,
    d.severity
from overtaken as o
inner join duebook.discrepancy as d
    on
        d.provider_account = :provider_account
        and d.kind = 'missing_at_provider'
        and o.account_id = d.account_id
        and o.payment_id = d.payment_id
where o.transition = 'cleared' and d.closed_at is null;
