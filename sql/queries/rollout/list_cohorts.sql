-- name: list_cohorts
-- The cohorts that count now, in the order in which they are asked.
select
    c.cohort,
    c.cohort_version,
    c.mode,
    c.provider_accounts,
    c.account_count,
    c.percent,
    c.attribute,
    c.attribute_values,
    c.stated_at,
    c.stated_by
from duebook.cohort as c
where
    c.mode is not null
    and not exists (
        select from duebook.cohort as n
        where n.cohort = c.cohort and n.cohort_version > c.cohort_version
    )
order by c.place, c.cohort;
