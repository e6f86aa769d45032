-- name: find_affected_batches
-- Batches that gained, lost or saw changed an entry in this run, or of which the provider spoke.
insert into affected_batch (batch_ref)
select a.batch_ref
from applied_entry as a
where a.change in ('new', 'changed') and a.batch_ref is not null
union
select a.old_batch_ref
from applied_entry as a
where a.change = 'changed' and a.old_batch_ref is not null
union
select b.batch_ref
from staged_batch as b;
