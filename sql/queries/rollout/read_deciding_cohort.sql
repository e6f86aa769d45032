-- name: read_deciding_cohort
-- Whose the next change of one account is, at each provider account, and which cohort decides it.
select
    a.provider_account,
    c.cohort,
    c.cohort_version,
    duebook.deciding_mode(a.mode, c.mode, a.notify_from) as mode
from duebook.provider_account as a
left join lateral duebook.cohort_of(:account_id::text, a.provider_account) as c on true
order by a.provider_account;
