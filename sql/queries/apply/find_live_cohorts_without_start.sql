-- name: find_live_cohorts_without_start
-- Cohorts that are live for a provider account in shadow that does not say from when on.
select
    c.cohort,
    a.provider_account
from duebook.cohort as c
inner join duebook.provider_account as a
    on c.provider_accounts is null or a.provider_account = any(c.provider_accounts)
where
    c.mode = 'live'
    and a.mode = 'shadow'
    and a.notify_from is null
    and not exists (
        select from duebook.cohort as n
        where n.cohort = c.cohort and n.cohort_version > c.cohort_version
    )
order by c.place, a.provider_account
limit 1;
