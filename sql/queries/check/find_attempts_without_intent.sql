-- name: find_attempts_without_intent
-- Attempts have no foreign key: this proves that each is of an intent.
select
    a.account_id,
    format('%s#%s', a.intent_id, a.attempt_no) as operation_key
from duebook.attempt as a
where
    not exists (
        select 1 from duebook.intent as i
        where i.account_id = a.account_id and i.intent_id = a.intent_id
    )
order by a.account_id, a.intent_id, a.attempt_no
limit :row_limit;
