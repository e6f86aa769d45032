-- name: list_key_owners
-- The accounts that were promised something under an operation key. No index leads with the key:
-- a person asks this, seldom.
select i.account_id
from duebook.intent as i
where i.operation_key = :operation_key::text
order by i.account_id;
