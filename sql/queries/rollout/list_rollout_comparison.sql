-- name: list_rollout_comparison
-- Keys of the comparison; without a :verdict those on which the two sides do not agree: what only
-- one of them tells in shadow, or at another time, and what was told twice.
select
    r.night,
    r.provider_account,
    r.account_id,
    r.payment_id,
    r.kind,
    r.channel,
    r.operation_key,
    r.verdict,
    r.ownership,
    r.cohort,
    r.cohort_version,
    r.ours_at,
    r.theirs_at,
    r.is_sent_by_us,
    r.theirs_count,
    r.is_doubled,
    r.run_id,
    r.entry_id,
    r.entry_version,
    r.before_status,
    r.after_status,
    r.sender,
    r.source,
    r.external_id,
    count(*) over () as total
from duebook_reports.rollout_comparison as r
where
    (:provider_account::text is null or r.provider_account = :provider_account::text)
    and (:night::date is null or r.night = :night::date)
    and (:account_id::text is null or r.account_id = :account_id::text)
    and case
        when :verdict::text is not null then r.verdict = :verdict::text
        else
            r.is_doubled
            or r.verdict in ('only_theirs', 'earlier', 'later')
            or (r.verdict = 'only_ours' and r.ownership = 'shadow')
    end
order by r.night desc, r.provider_account, r.account_id, r.payment_id, r.kind
limit :row_limit::bigint;
