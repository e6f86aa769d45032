-- name: find_ended_intents_still_moving
-- A key that has ended is for ever out of the moving tables; a claim would meet it again.
with moving as (
    select
        d.account_id,
        d.intent_id
    from duebook.due as d
    union
    select
        h.account_id,
        h.intent_id
    from duebook.held as h
    union
    select
        u.account_id,
        u.intent_id
    from duebook.in_doubt as u
    union
    select
        p.account_id,
        p.intent_id
    from duebook.proposed as p
)

select
    o.account_id,
    o.operation_key
from moving as m
inner join duebook.intent as i on m.account_id = i.account_id and m.intent_id = i.intent_id
inner join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
order by o.account_id, o.operation_key
limit :row_limit;
