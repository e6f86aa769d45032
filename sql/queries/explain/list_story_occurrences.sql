-- name: list_story_occurrences
-- The newest occurrences of a schedule, or those of some intents, with their four facts.
select
    r.account_id,
    r.schedule,
    r.nominal_on,
    r.intended_local,
    r.zone,
    r.case_of,
    r.due_at,
    r.tzdb_version,
    r.operation_key,
    r.state,
    r.reason,
    r.result,
    r.ended_at,
    r.late_seconds,
    r.intent_id
from duebook_reports.occurrences as r
where
    r.account_id = :account_id
    and (r.schedule = :schedule::text or r.intent_id = any(:intent_ids::bigint[]))
order by r.nominal_on desc
limit :row_limit::bigint;
