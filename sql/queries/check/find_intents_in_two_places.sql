-- name: find_intents_in_two_places
-- Every intent stands in exactly one place; these stand in several of the moving tables.
with place as (
    select
        d.account_id,
        d.intent_id
    from duebook.due as d
    union all
    select
        p.account_id,
        p.intent_id
    from duebook.proposed as p
    union all
    select
        h.account_id,
        h.intent_id
    from duebook.held as h
    union all
    select
        u.account_id,
        u.intent_id
    from duebook.in_doubt as u
    union all
    select
        m.account_id,
        m.intent_id
    from duebook.batch as b
    cross join
        lateral unnest(b.account_ids, b.intent_ids, b.attempt_nos)
            as m (account_id, intent_id, attempt_no)
    where
        not exists (
            select 1 from duebook.attempt_result as r
            where
                r.account_id = m.account_id
                and r.intent_id = m.intent_id
                and r.attempt_no = m.attempt_no
        )
),

doubled as (
    select
        p.account_id,
        p.intent_id
    from place as p
    group by p.account_id, p.intent_id
    having count(*) > 1
)

select
    d.account_id,
    coalesce(i.operation_key, d.intent_id::text) as operation_key
from doubled as d
left join duebook.intent as i on d.account_id = i.account_id and d.intent_id = i.intent_id
order by d.account_id, operation_key
limit :row_limit;
