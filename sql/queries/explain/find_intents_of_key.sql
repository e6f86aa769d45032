-- name: find_intents_of_key
-- Who was promised something under an operation key. The accounts that may own it are found by the
-- payment that the key names, so that both look-ups use an index.
select
    i.account_id,
    i.intent_id,
    i.payment_id
from duebook.ledger_payment as p
inner join duebook.intent as i
    on
        p.account_id = i.account_id
        and i.operation_key = :operation_key
where p.payment_id = :payment_id
order by i.account_id
limit :row_limit::bigint;
