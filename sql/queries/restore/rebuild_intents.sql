-- name: rebuild_intents
-- Makes intents again that follow from the facts: how many were made or removed, with some keys.
select
    r.done,
    count(*)::integer as intents,
    (array_agg(concat_ws(' ', r.account_id, r.operation_key) order by r.operation_key))[1:20]
        as keys
from duebook.rebuild_intents(:rebuilt_by::text) as r
group by r.done
order by r.done;
