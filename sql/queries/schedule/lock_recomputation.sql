-- name: lock_recomputation
-- Who has it computes waiting rows again; others leave it to him. Beside writers (key share).
select
    c.tzdb_version,
    c.account_id,
    c.intent_id
from duebook.calendar_state as c
where c.recomputed_at is null
for no key update skip locked;
