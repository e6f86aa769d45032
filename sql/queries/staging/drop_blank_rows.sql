-- name: drop_blank_rows
-- A row of delimiters alone is a blank line, and no row.
with blank as (
    delete from raw_row as r
    using suspect_row as q
    where
        r.source_no = q.source_no
        and r.line_no = q.line_no
        and jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text[] = '{}'
    returning r.source_no, r.line_no
)

delete from suspect_row as q
using blank as b
where q.source_no = b.source_no and q.line_no = b.line_no;
