-- name: backdate_retry
-- The history of a drill: the retry of what was put off came due at `due_at`. In a drill's database
-- only.
with moved as (
    update duebook.intent_change as c
    set due_at = :due_at::timestamptz
    where
        c.reason = 'retry'
        and exists (
            select from duebook.environment as e
            where e.is_test and e.name = 'drill'
        )
    returning c.account_id, c.intent_id, c.due_at
)

update duebook.due as d
set due_at = m.due_at
from moved as m
where d.account_id = m.account_id and d.intent_id = m.intent_id
returning d.intent_id;
