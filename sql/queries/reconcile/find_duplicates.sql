-- name: find_duplicates
-- Entries that were told more than once in this run.
insert into staged_duplicate (entry_id)
select e.entry_id
from staged_entry as e
group by e.entry_id
having count(*) > 1;
