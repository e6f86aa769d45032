-- name: find_intents_of_reminder
-- Who was promised something under the key of a reminder: accounts with a schedule of its name.
select
    i.account_id,
    i.intent_id,
    i.payment_id
from duebook.schedule as s
inner join duebook.intent as i
    on s.account_id = i.account_id and i.operation_key = :operation_key
where s.schedule = :schedule
order by i.account_id
limit :row_limit::bigint;
