-- name: list_story_payments
-- The booked side of the payments of a story, beside the account that is to settle each.
select
    p.account_id,
    p.payment_id,
    p.reference,
    p.amount_minor,
    p.currency,
    p.booked_status,
    p.expected_at,
    p.provider_account,
    p.is_void,
    p.is_void
    or p.booked_status in ('void', 'voided', 'cancelled', 'canceled', 'failed') as is_cancelled,
    p.booked_version,
    p.imported_at,
    a.provider,
    a.mode,
    a.notify_from,
    a.settle_within,
    p.expected_at + a.settle_within as missing_from,
    a.last_full_as_of,
    (
        select count(*) from duebook.ledger_payment as o
        where
            o.reference = p.reference
            and o.provider_account is not distinct from p.provider_account
            and not o.is_void
            and (o.account_id, o.payment_id) <> (p.account_id, p.payment_id)
    ) as same_reference
from duebook.ledger_payment as p
left outer join duebook.provider_account as a using (provider_account)
where p.account_id = :account_id and p.payment_id = any(:payment_ids::text[])
order by p.payment_id;
