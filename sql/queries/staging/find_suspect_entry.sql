-- name: find_suspect_entry
-- Whether the fast way met anything odd.
select exists(select from staged_entry as e where e.is_suspect) as is_found;
