-- name: find_results_without_attempt
-- Results have no foreign key: this proves that each is of an attempt.
select
    r.account_id,
    format('%s#%s', r.intent_id, r.attempt_no) as operation_key
from duebook.attempt_result as r
where
    not exists (
        select 1 from duebook.attempt as a
        where
            a.account_id = r.account_id
            and a.intent_id = r.intent_id
            and a.attempt_no = r.attempt_no
    )
order by r.account_id, r.intent_id, r.attempt_no
limit :row_limit;
