-- name: list_all_candidates
-- The fast way broke off at a value that it could not read; every row that is read is examined.
insert into suspect_row (source_no, line_no)
select
    q.source_no,
    q.line_no
from candidate_row as q;
