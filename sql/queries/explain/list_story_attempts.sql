-- name: list_story_attempts
-- Claims of the intents and how each went; a claim without a result is live, in doubt or rescued.
select
    a.account_id,
    a.intent_id,
    a.attempt_no,
    a.batch_id,
    a.claimed_at,
    coalesce(b.sender, e.sender) as sender,
    e.how as batch_ended_how,
    e.ended_at as batch_ended_at,
    r.result,
    r.reason,
    r.provider_code,
    r.provider_message_id,
    r.finished_at,
    r.is_late
from duebook.attempt as a
left outer join duebook.attempt_result as r
    on
        a.account_id = r.account_id
        and a.intent_id = r.intent_id
        and a.attempt_no = r.attempt_no
left outer join duebook.batch as b on a.batch_id = b.batch_id
left outer join duebook.batch_ended as e on a.batch_id = e.batch_id
where a.account_id = :account_id and a.intent_id = any(:intent_ids::bigint[])
order by a.intent_id, a.attempt_no
limit :row_limit::bigint;
