-- name: find_intents_without_change
-- An intent of reconciliation derives from a ledger change of the same payment.
select
    i.account_id,
    i.operation_key
from duebook.intent as i
where
    i.change_id is not null
    and not exists (
        select 1 from duebook.ledger_change as c
        where
            c.account_id = i.account_id
            and c.change_id = i.change_id
            and c.payment_id = i.payment_id
    )
order by i.account_id, i.operation_key
limit :row_limit;
