-- name: list_doubts
-- Intents in doubt by cause, each cause with the key of its oldest.
select
    u.cause,
    count(*) as intent_count,
    min(u.since) as oldest_since,
    (array_agg(i.operation_key order by u.since, u.intent_id))[1] as oldest_key
from duebook.in_doubt as u
inner join duebook.intent as i on u.account_id = i.account_id and u.intent_id = i.intent_id
group by u.cause
order by intent_count desc, u.cause asc;
