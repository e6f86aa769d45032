-- name: lock_due_rows
-- Those of the intents that wait in due, locked; one that is just being claimed is left out.
select
    d.account_id,
    d.intent_id,
    d.due_at
from unnest(:account_ids::text[], :intent_ids::bigint[]) as w (account_id, intent_id)
inner join duebook.due as d on w.account_id = d.account_id and w.intent_id = d.intent_id
order by d.account_id, d.intent_id
for update of d skip locked;
