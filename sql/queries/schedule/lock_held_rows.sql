-- name: lock_held_rows
-- Those of the intents that are held, locked; one that is just being released is left out.
select
    h.account_id,
    h.intent_id,
    h.due_at,
    h.cause
from unnest(:account_ids::text[], :intent_ids::bigint[]) as w (account_id, intent_id)
inner join duebook.held as h on w.account_id = h.account_id and w.intent_id = h.intent_id
order by h.account_id, h.intent_id
for update of h skip locked;
