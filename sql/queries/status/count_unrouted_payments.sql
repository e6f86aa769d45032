-- name: count_unrouted_payments
-- Booked payments for which nobody is waited: no provider account, nothing settled yet, not void.
select count(*) as payment_count
from duebook.ledger_payment as p
where
    p.provider_account is null
    and not p.is_void
    and not exists (
        select 1 from duebook.settled_position as s
        where s.account_id = p.account_id and s.payment_id = p.payment_id
    );
