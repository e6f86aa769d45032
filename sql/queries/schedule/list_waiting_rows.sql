-- name: list_waiting_rows
-- The next rows that wait (due or held), in the order of their keys, and which are reminders.
with from_due as materialized (
    select
        d.account_id,
        d.intent_id
    from duebook.due as d
    where (d.account_id, d.intent_id) > (:account_id::text, :intent_id::bigint)
    order by d.account_id, d.intent_id
    limit :most::bigint
),

from_held as materialized (
    select
        h.account_id,
        h.intent_id
    from duebook.held as h
    where (h.account_id, h.intent_id) > (:account_id::text, :intent_id::bigint)
    order by h.account_id, h.intent_id
    limit :most::bigint
)

select
    w.account_id,
    w.intent_id,
    (
        select true
        from duebook.occurrence as c
        where c.account_id = w.account_id and c.intent_id = w.intent_id
        limit 1
    ) is not null as is_reminder
from (
    select
        d.account_id,
        d.intent_id
    from from_due as d
    union all
    select
        h.account_id,
        h.intent_id
    from from_held as h
) as w
order by w.account_id, w.intent_id
limit :most::bigint;
