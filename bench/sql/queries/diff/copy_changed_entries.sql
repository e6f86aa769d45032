-- name: copy_changed_entries
-- The rows that differ, as CSV.
copy changed_entry from stdin (format csv);
