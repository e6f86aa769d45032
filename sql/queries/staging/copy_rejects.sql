-- name: copy_rejects
-- Rows that have not the header's shape, or that an API told and nobody can read.
copy staged_reject (source_no, line_no, column_name, value, reason, expected, raw) from stdin;
