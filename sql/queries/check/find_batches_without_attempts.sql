-- name: find_batches_without_attempts
-- A claim writes an attempt for each intent of its batch in its own transaction: these have none.
select
    w.account_id,
    format('batch:%s#%s', b.batch_id, w.intent_id) as operation_key
from duebook.batch as b
cross join
    lateral unnest(b.account_ids, b.intent_ids, b.attempt_nos)
        as w (account_id, intent_id, attempt_no)
where
    not exists (
        select from duebook.attempt as a
        where
            a.account_id = w.account_id
            and a.intent_id = w.intent_id
            and a.attempt_no = w.attempt_no
            and a.batch_id = b.batch_id
    )
order by w.account_id, operation_key
limit :row_limit;
