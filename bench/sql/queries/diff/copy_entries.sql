-- name: copy_entries
-- A settlement file, as it is.
copy copied_entry from stdin (format csv, header true);
