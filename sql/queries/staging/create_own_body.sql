-- name: create_own_body
-- Entries of an API carry their own body.
create temporary view entry_body as
select
    a.source_no,
    a.line_no,
    a.body
from applied_entry as a
union all
select
    s.source_no,
    s.line_no,
    s.body
from superseded_entry as s;
