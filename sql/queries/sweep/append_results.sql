-- name: append_results
-- A flush that met a unique violation, repeated past the conflicts.
select
    r.account_id,
    r.intent_id,
    r.attempt_no,
    r.counts
from duebook.append_results(:batch_id::bigint, :flush_no::integer, :results::jsonb) as r;
