-- name: list_run_files
-- The settlement files that a run took.
select
    f.name,
    f.sha256,
    f.row_count,
    f.quarantined_count,
    f.received_at
from duebook.settlement_file as f
where f.run_id = :run_id
order by f.file_id
limit :row_limit::bigint;
