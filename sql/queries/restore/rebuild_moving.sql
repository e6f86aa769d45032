-- name: rebuild_moving
-- What the rebuild changed: how many intents went from where to where, with some of their keys.
select
    r.was,
    r.place,
    count(*) as intents,
    (array_agg(concat_ws(' ', r.account_id, coalesce(r.operation_key, r.intent_id::text))))[1:20]
        as keys
from duebook.rebuild_moving(:rebuilt_by) as r
group by r.was, r.place
order by r.was, r.place;
