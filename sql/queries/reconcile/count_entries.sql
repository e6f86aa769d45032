-- name: count_entries
-- How many entries were told, and how many of them differ, by how. With :is_filtered the unchanged
-- ones were never laid down, and the files' own counts say how many there were.
select
    case
        when :is_filtered::boolean
            then (
                select coalesce(sum(s.row_count - s.quarantined_count), 0)::bigint
                from staged_source as s
                where s.file_id is not null
            ) - (select count(*) from superseded_entry)
        else (select count(*) from staged_entry)
    end as told,
    count(*) filter (where a.change = 'new') as entries_new,
    count(*) filter (where a.change = 'changed') as entries_changed,
    count(*) filter (where a.change = 'stale') as entries_stale
from applied_entry as a;
