-- name: find_outcomes_without_intent
-- Outcomes have no foreign key: this proves that each ends the key of its own intent.
select
    o.account_id,
    o.operation_key
from duebook.outcome as o
where
    not exists (
        select 1 from duebook.intent as i
        where
            i.account_id = o.account_id
            and i.intent_id = o.intent_id
            and i.operation_key = o.operation_key
    )
order by o.account_id, o.operation_key
limit :row_limit;
