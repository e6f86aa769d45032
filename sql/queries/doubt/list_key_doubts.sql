-- name: list_key_doubts
-- Who has an operation key in doubt; null for the account asks every account.
select
    u.account_id,
    u.intent_id
from duebook.in_doubt as u
inner join duebook.intent as i on u.account_id = i.account_id and u.intent_id = i.intent_id
where
    i.operation_key = :operation_key::text
    and (:account_id::text is null or u.account_id = :account_id::text)
order by u.account_id;
