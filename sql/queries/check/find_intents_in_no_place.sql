-- name: find_intents_in_no_place
-- Every intent stands in exactly one place; these stand in none, so nothing will ever end them.
select
    i.account_id,
    i.operation_key
from duebook.intent as i
where
    not exists (
        select 1 from duebook.outcome as o
        where o.account_id = i.account_id and o.operation_key = i.operation_key
    )
    and not exists (
        select 1 from duebook.due as d
        where d.account_id = i.account_id and d.intent_id = i.intent_id
    )
    and not exists (
        select 1 from duebook.proposed as p
        where p.account_id = i.account_id and p.intent_id = i.intent_id
    )
    and not exists (
        select 1 from duebook.held as h
        where h.account_id = i.account_id and h.intent_id = i.intent_id
    )
    and not exists (
        select 1 from duebook.in_doubt as u
        where u.account_id = i.account_id and u.intent_id = i.intent_id
    )
    and not exists (
        select 1
        from duebook.batch as b
        cross join lateral unnest(b.account_ids, b.intent_ids) as m (account_id, intent_id)
        where m.account_id = i.account_id and m.intent_id = i.intent_id
    )
order by i.account_id, i.operation_key
limit :row_limit;
