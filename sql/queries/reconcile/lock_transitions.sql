-- name: lock_transitions
-- Locks their payments without waiting: one that another run is changing right now is judged by the
-- next run, so that no two runs wait for each other.
with locked as (
    select
        p.account_id,
        p.payment_id
    from transition as t
    inner join duebook.ledger_payment as p
        on t.account_id = p.account_id and t.payment_id = p.payment_id
    order by p.account_id, p.payment_id
    for update of p skip locked
)

update transition as t
set is_locked = true
from locked as k
where t.account_id = k.account_id and t.payment_id = k.payment_id;
