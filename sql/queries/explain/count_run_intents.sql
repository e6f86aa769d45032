-- name: count_run_intents
-- Where the intents of a run stand now, by kind and state.
select
    i.kind,
    i.ownership,
    i.cohort,
    i.state,
    i.reason,
    count(*) as intent_count,
    min(i.due_at) as first_due_at
from duebook_reports.intents as i
where i.run_id = :run_id
group by i.kind, i.ownership, i.cohort, i.state, i.reason
order by i.kind, i.ownership, i.cohort, i.state, i.reason;
