-- name: delete_rejected_raw_rows
-- Rows that were rejected take no further part.
delete from raw_row as r
using staged_reject as j
where r.source_no = j.source_no and r.line_no = j.line_no;
