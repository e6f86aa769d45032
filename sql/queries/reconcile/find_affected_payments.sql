-- name: find_affected_payments
-- Payments that gained, lost or saw changed an entry in this run.
insert into affected_payment (account_id, payment_id)
select
    c.account_id,
    c.payment_id
from claim as c
where
    c.account_id is not null
    and (
        c.is_applied
        or (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id)
    )
union
select
    c.old_account_id,
    c.old_payment_id
from claim as c
where
    c.old_account_id is not null
    and (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id);
