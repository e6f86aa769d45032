-- name: fill_payments
-- What each notice is about: a payment in the books.
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
    'account-' || lpad((n % :accounts::integer)::text, 6, '0') as account_id,
    'P' || lpad(n::text, 10, '0') as payment_id,
    'ref-P' || lpad(n::text, 10, '0') as reference,
    4200 as amount_minor,
    'EUR' as currency,
    'open' as booked_status,
    statement_timestamp() as expected_at,
    'bench' as provider_account
from generate_series(0, :rows::integer - 1) as n;
