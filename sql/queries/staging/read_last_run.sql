-- name: read_last_run
-- The newest committed run of an account: what was compared before it must be compared again.
select max(r.run_id) as run_id
from duebook.reconciliation_run as r
where r.provider_account = :provider_account;
