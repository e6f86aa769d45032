-- name: find_keys_sent_twice
-- No key is accepted twice by a channel, whichever attempts did it.
select
    r.account_id,
    i.operation_key
from duebook.attempt_result as r
inner join duebook.intent as i on r.account_id = i.account_id and r.intent_id = i.intent_id
where r.result = 'sent'
group by r.account_id, i.operation_key
having count(*) > 1
order by r.account_id, i.operation_key
limit :row_limit;
