-- name: find_moving_rows_without_intent
-- No foreign key holds the moving tables to their intents (it would cost half the rate): this does.
with moving as (
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
)

select
    m.account_id,
    m.intent_id::text as operation_key
from moving as m
where
    not exists (
        select 1 from duebook.intent as i
        where i.account_id = m.account_id and i.intent_id = m.intent_id
    )
order by m.account_id, m.intent_id
limit :row_limit;
