-- What has been open for more than five days, and who works on it? Age counts to the newest night.
select
    provider_account,
    kind,
    coalesce(account_id || ' ' || payment_id, batch_ref, entry_id) as subject,
    age_days,
    severity,
    difference,
    currency,
    assignee
from duebook_reports.discrepancies
where closed_at is null and status in ('open', 'acknowledged') and age_days > 5
order by age_days desc, kind, subject;
