-- name: list_rollout_accounts
-- The provider accounts with the mode that counts where no cohort fits.
select
    a.provider_account,
    a.mode,
    a.notify_from
from duebook.provider_account as a
order by a.provider_account;
