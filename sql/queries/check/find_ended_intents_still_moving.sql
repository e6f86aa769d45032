-- name: find_ended_intents_still_moving
-- A key that has ended is for ever out of the moving tables; a claim would meet it again.
select
    o.account_id,
    o.operation_key
from duebook.outcome as o
where
    exists (
        select 1 from duebook.due as d
        where d.account_id = o.account_id and d.intent_id = o.intent_id
    )
    or exists (
        select 1 from duebook.held as h
        where h.account_id = o.account_id and h.intent_id = o.intent_id
    )
    or exists (
        select 1 from duebook.in_doubt as u
        where u.account_id = o.account_id and u.intent_id = o.intent_id
    )
    or exists (
        select 1 from duebook.proposed as p
        where p.account_id = o.account_id and p.intent_id = o.intent_id
    )
order by o.account_id, o.operation_key
limit :row_limit;
