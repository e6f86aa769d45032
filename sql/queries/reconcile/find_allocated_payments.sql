-- name: find_allocated_payments
-- Payments that gained, lost or saw changed a share of an entry in this run.
insert into affected_payment (account_id, payment_id)
select distinct
    n.account_id,
    n.payment_id
from allocation_new as n
where
    not exists (
        select from affected_payment as f
        where f.account_id = n.account_id and f.payment_id = n.payment_id
    );
