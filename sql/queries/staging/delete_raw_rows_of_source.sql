-- name: delete_raw_rows_of_source
-- Takes back what the fast way laid down of a file that turned out not to be regular.
delete from raw_row as r
where r.source_no = :source_no;
