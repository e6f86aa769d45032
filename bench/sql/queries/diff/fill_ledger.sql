-- name: fill_ledger
-- The books that the settlement file is compared with; every currency of the file has two decimals.
insert into duebook.ledger_payment (
    account_id,
    payment_id,
    reference,
    amount_minor,
    currency,
    booked_status,
    expected_at,
    provider_account
)
select
    b.account_id,
    b.payment_id,
    b.reference,
    replace(b.amount, '.', '')::bigint as amount_minor,
    b.currency,
    b.status,
    b.expected_at,
    b.provider_account
from booked_row as b;
