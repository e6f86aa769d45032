-- name: count_run_intents
-- Where the intents of a run stand now, by kind and state.
select
    i.kind,
    i.ownership,
    case
        when o.operation_key is not null then o.result
        when d.intent_id is not null then 'scheduled'
        when h.intent_id is not null then 'held'
        when u.intent_id is not null then 'unknown'
        when p.intent_id is not null then 'proposed'
        else 'enqueued'
    end as state,
    coalesce(o.reason, h.cause, u.cause) as reason,
    count(*) as intent_count,
    min(coalesce(o.due_at, d.due_at, h.due_at, u.due_at, i.notify_at)) as first_due_at
from duebook.intent as i
left outer join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
left outer join duebook.proposed as p on i.account_id = p.account_id and i.intent_id = p.intent_id
left outer join duebook.due as d on i.account_id = d.account_id and i.intent_id = d.intent_id
left outer join duebook.held as h on i.account_id = h.account_id and i.intent_id = h.intent_id
left outer join duebook.in_doubt as u on i.account_id = u.account_id and i.intent_id = u.intent_id
where i.run_id = :run_id
group by 1, 2, 3, 4
order by 1, 2, 3, 4;
