-- name: find_doubts_in_due
-- What may have been sent is in doubt and not due. These stand in due, but their last attempt may
-- have been tried, has no known end, and nobody put them back; a claim would send them again.
with claimed as (
    select
        array_agg(d.account_id) as account_ids,
        array_agg(d.intent_id) as intent_ids
    from duebook.due as d
    where d.claims > 0 and d.safe_retry_until is null
)

select
    l.account_id,
    i.operation_key
from claimed as c
cross join lateral duebook.locate_intents(c.account_ids, c.intent_ids) as l
inner join duebook.intent as i on l.account_id = i.account_id and l.intent_id = i.intent_id
where
    l.place = 'in_doubt'
    -- One that is known to have been sent waits for the gate that takes the answer over.
    and not exists (
        select from duebook.attempt_result as r
        where r.account_id = l.account_id and r.intent_id = l.intent_id and r.result = 'sent'
    )
order by l.account_id, i.operation_key
limit :row_limit;
