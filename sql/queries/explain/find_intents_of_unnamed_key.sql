-- name: find_intents_of_unnamed_key
-- The same for a key that names no booked payment (a schedule, a hold): every account is looked at.
select
    i.account_id,
    i.intent_id,
    i.payment_id
from duebook.intent as i
where i.operation_key = :operation_key
order by i.account_id
limit :row_limit::bigint;
