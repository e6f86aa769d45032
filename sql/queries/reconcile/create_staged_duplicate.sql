-- name: create_staged_duplicate
-- Entries that were told more than once in this run.
create temporary table staged_duplicate (
    entry_id text not null
);
