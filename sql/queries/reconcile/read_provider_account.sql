-- name: read_provider_account
-- How an account is set up, read before anything is staged.
select
    a.provider,
    a.mode,
    a.notify_from,
    a.settle_within,
    a.zone,
    a.look_back,
    a.settings
from duebook.provider_account as a
where a.provider_account = :provider_account;
