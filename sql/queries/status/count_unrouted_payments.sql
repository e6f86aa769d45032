-- name: count_unrouted_payments
-- Booked payments that nobody is waited for: no provider account, and not void.
select count(*) as payment_count
from duebook.ledger_payment as p
where p.provider_account is null and not p.is_void;
