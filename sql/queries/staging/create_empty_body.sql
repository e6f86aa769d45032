-- name: create_empty_body
-- Where no file was laid down, entries carry their own body or none.
create temporary view entry_body as
select
    e.source_no,
    e.line_no,
    e.body
from staged_entry as e
where false;
