-- name: lock_payments
-- Locks the payments that this run changes, in key order, so that two provider accounts that pay
-- one payment at the same moment follow each other. What the other one wrote is read in later
-- statements.
select count(*) as locked
from (
    select p.payment_id
    from affected_payment as f
    inner join duebook.ledger_payment as p
        on f.account_id = p.account_id and f.payment_id = p.payment_id
    order by p.account_id, p.payment_id
    for update of p
) as locked_payment;
