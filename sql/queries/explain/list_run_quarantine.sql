-- name: list_run_quarantine
-- The rows that a run could not read: where and why, without their values.
select
    q.file_name,
    q.line_no,
    q.column_name,
    q.reason,
    q.expected,
    q.quarantined_at
from duebook.quarantined_row as q
where q.run_id = :run_id
order by q.quarantined_row_id
limit :row_limit::bigint;
