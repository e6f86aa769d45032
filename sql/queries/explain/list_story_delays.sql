-- name: list_story_delays
-- Later due times of the intents, in the order of writing.
select
    c.account_id,
    c.intent_id,
    c.intent_change_id,
    c.due_at,
    c.reason,
    c.changed_at
from duebook.intent_change as c
where c.account_id = :account_id and c.intent_id = any(:intent_ids::bigint[])
order by c.intent_change_id
limit :row_limit::bigint;
