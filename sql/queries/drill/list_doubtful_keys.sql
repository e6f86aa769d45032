-- name: list_doubtful_keys
-- What is in doubt now, and why.
select
    u.account_id,
    i.operation_key,
    u.cause,
    u.look_up_from
from duebook.in_doubt as u
inner join duebook.intent as i using (account_id, intent_id)
order by u.account_id, i.operation_key;
