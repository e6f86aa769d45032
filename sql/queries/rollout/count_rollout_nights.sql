-- name: count_rollout_nights
-- The newest nights of the comparison, by provider account and whose the keys are.
select
    r.night,
    r.provider_account,
    r.ownership,
    count(*) filter (where r.verdict = 'both') as in_both,
    count(*) filter (where r.verdict = 'only_ours') as only_ours,
    count(*) filter (where r.verdict = 'only_theirs') as only_theirs,
    count(*) filter (where r.verdict = 'earlier') as earlier,
    count(*) filter (where r.verdict = 'later') as later,
    count(*) filter (where r.verdict = 'waiting') as waiting,
    count(*) filter (where r.is_doubled) as doubled
from duebook_reports.rollout_comparison as r
where :provider_account::text is null or r.provider_account = :provider_account::text
group by r.night, r.provider_account, r.ownership
order by r.night desc, r.provider_account, r.ownership
limit :row_limit::bigint;
