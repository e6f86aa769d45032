-- name: find_attempts_in_no_place
-- An attempt has a result, or its batch lives, or it is known how the batch ended. These may have
-- been tried and nothing says so: their batch is gone without a word, and they are not in doubt.
select
    a.account_id,
    format('%s#%s', a.intent_id, a.attempt_no) as operation_key
from duebook.attempt as a
where
    not exists (
        select from duebook.attempt_result as r
        where
            r.account_id = a.account_id
            and r.intent_id = a.intent_id
            and r.attempt_no = a.attempt_no
    )
    and not exists (select from duebook.batch as b where b.batch_id = a.batch_id)
    and not exists (select from duebook.batch_ended as e where e.batch_id = a.batch_id)
    and not exists (
        select from duebook.in_doubt as u
        where
            u.account_id = a.account_id
            and u.intent_id = a.intent_id
            and u.attempt_no = a.attempt_no
    )
    and exists (
        select from duebook.intent as i
        where i.account_id = a.account_id and i.intent_id = a.intent_id
    )
order by a.account_id, a.intent_id, a.attempt_no
limit :row_limit;
