-- name: find_live_account
-- A provider account whose notices are sent, outside a database that is marked as test.
select a.provider_account
from duebook.provider_account as a
where
    a.mode = 'live'
    and not exists (select from duebook.environment as e where e.is_test)
order by a.provider_account
limit 1;
