-- name: list_doubts_in_full
-- Everything that is known of each intent in doubt, the oldest first.
select
    u.account_id,
    i.operation_key,
    u.cause,
    u.channel,
    u.kind,
    u.attempt_no,
    u.batch_id,
    coalesce(b.sender, e.sender) as sender,
    e.how as batch_ended_how,
    a.claimed_at,
    u.due_at,
    u.give_up_at,
    u.since,
    u.look_up_from,
    clock_timestamp() >= u.look_up_from as may_be_looked_up,
    u.tries,
    u.claims,
    r.result as attempt_result,
    r.provider_code,
    r.finished_at as answered_at
from duebook.in_doubt as u
inner join duebook.intent as i on u.account_id = i.account_id and u.intent_id = i.intent_id
left join duebook.attempt as a
    on u.account_id = a.account_id and u.intent_id = a.intent_id and u.attempt_no = a.attempt_no
left join duebook.attempt_result as r
    on u.account_id = r.account_id and u.intent_id = r.intent_id and u.attempt_no = r.attempt_no
left join duebook.batch as b on u.batch_id = b.batch_id
left join duebook.batch_ended as e on u.batch_id = e.batch_id
order by u.since, u.account_id, u.intent_id
limit :row_limit;
