-- name: read_message_facts
-- What the notices of a window say, from the change that made each and the payment it is about.
-- Amounts are totals as of the change, so that a notice that replaced an older one is whole.
select
    i.account_id,
    i.intent_id,
    i.payment_id,
    p.reference,
    case
        when i.kind in ('payment_missing', 'payment_cleared') then p.amount_minor
        when i.kind = 'payment_refunded' then l.after_refunded_minor
        when i.kind = 'payment_disputed' then l.after_charged_back_minor
        else l.after_captured_minor
    end as amount_minor,
    case
        when i.kind in ('payment_missing', 'payment_cleared') then p.currency
        else l.currency
    end as currency,
    case when p.currency = l.currency then p.amount_minor end as expected_minor,
    coalesce(l.evidence_at, p.expected_at, i.notify_at) as occurred_at,
    l.before_status,
    l.after_status,
    (
        select e.exponent
        from duebook.currency_exponent as e
        where e.currency = coalesce(l.currency, p.currency) and e.provider in (a.provider, '*')
        order by e.provider = '*'
        limit 1
    ) as exponent
from unnest(:account_ids::text[], :intent_ids::bigint[]) as w (account_id, intent_id)
inner join duebook.intent as i on w.account_id = i.account_id and w.intent_id = i.intent_id
left join duebook.ledger_change as l
    on i.account_id = l.account_id and i.change_id = l.change_id
left join duebook.ledger_payment as p
    on i.account_id = p.account_id and i.payment_id = p.payment_id
left join duebook.provider_account as a on l.provider_account = a.provider_account;
