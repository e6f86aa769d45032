-- name: find_unwitnessed_account
-- The first of the given provider accounts, with only_new of those that are not live yet; none in a
-- database that is marked as test.
select n.provider_account
from unnest(:accounts::text[]) as n (provider_account)
where
    not exists (select from duebook.environment as e where e.is_test)
    and not (
        :only_new::boolean
        and exists (
            select
            from duebook.provider_account as a
            where a.provider_account = n.provider_account and a.mode = 'live'
        )
    )
order by n.provider_account
limit 1;
