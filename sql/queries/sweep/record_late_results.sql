-- name: record_late_results
-- A flush that came after its batch was rescued.
select
    r.kept,
    r.ended
from duebook.record_late_results(:batch_id::bigint, :flush_no::integer, :results::jsonb) as r;
