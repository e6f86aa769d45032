-- name: list_all_rows
-- The fast way broke off at a value that it could not read; every row is examined.
insert into suspect_row (source_no, line_no)
select
    r.source_no,
    r.line_no
from raw_row as r;
