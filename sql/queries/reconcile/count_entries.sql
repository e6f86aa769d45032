-- name: count_entries
-- How many entries were told, and how many of them differ, by how.
select
    (select count(*) from staged_entry) as told,
    count(*) filter (where a.change = 'new') as entries_new,
    count(*) filter (where a.change = 'changed') as entries_changed,
    count(*) filter (where a.change = 'stale') as entries_stale
from applied_entry as a;
