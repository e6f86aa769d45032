-- name: lock_provider_accounts
-- Waits for every run in flight, and lets none start before this transaction has ended.
select a.provider_account
from duebook.provider_account as a
order by a.provider_account
for update;
