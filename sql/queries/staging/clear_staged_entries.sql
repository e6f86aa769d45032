-- name: clear_staged_entries
-- Before the rows are laid down again, examined.
truncate staged_entry;
