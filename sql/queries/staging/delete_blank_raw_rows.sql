-- name: delete_blank_raw_rows
-- A row of delimiters alone is a blank line.
delete from raw_row as r
where jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text [] = '{}';
