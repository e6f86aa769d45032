-- name: accept_restore
-- Puts in doubt what may have been sent since the point of the restore.
select
    a.restore_id,
    a.from_due,
    a.from_held,
    a.from_batches,
    a.lost_provider_accounts,
    a.intents_were_lost
from duebook.accept_restore(
    :witnessed::jsonb, :is_unwitnessed::boolean, :accepted_by
) as a;
