-- name: list_story_requests
-- Wishes to end the intents while a batch held them.
select
    r.account_id,
    r.intent_id,
    r.intent_request_id,
    r.request,
    r.reason,
    r.requested_by,
    r.requested_at
from duebook.intent_request as r
where r.account_id = :account_id and r.intent_id = any(:intent_ids::bigint[])
order by r.intent_request_id
limit :row_limit::bigint;
