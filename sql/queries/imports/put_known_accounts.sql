-- name: put_known_accounts
-- Enters the provider accounts of duebook.toml, then those that were applied.
insert into known_account (provider_account, provider)
select
    c.provider_account,
    c.provider
from unnest(:accounts::text[], :providers::text[]) as c (provider_account, provider)
union all
select
    a.provider_account,
    a.provider
from duebook.provider_account as a
on conflict (provider_account) do nothing;
