-- name: find_keys_sent_twice
-- No key is accepted twice by a channel, whichever attempts did it. A repeat that was claimed while
-- the channel recognises it (safe_retry_until, which the gate tests again) is no second time.
select
    r.account_id,
    i.operation_key
from duebook.attempt_result as r
inner join duebook.intent as i on r.account_id = i.account_id and r.intent_id = i.intent_id
left join duebook.attempt as a
    on
        r.account_id = a.account_id
        and r.intent_id = a.intent_id
        and r.attempt_no = a.attempt_no
        and a.claimed_at < a.safe_retry_until
where r.result = 'sent' and a.attempt_no is null
group by r.account_id, i.operation_key
having count(*) > 1
order by r.account_id, i.operation_key
limit :row_limit;
