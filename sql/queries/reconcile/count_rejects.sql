-- name: count_rejects
-- Rows that could not be read in this run.
select count(*)::bigint as quarantined
from (select distinct
    j.source_no,
    j.line_no
from staged_reject as j) as r;
