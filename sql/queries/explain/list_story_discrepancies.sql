-- name: list_story_discrepancies
-- Differences of the payments, or of one entry in suspense, open ones and closed ones.
select
    d.account_id,
    d.payment_id,
    d.provider_account,
    a.provider,
    d.kind,
    d.subject,
    d.entry_id,
    d.provider_minor,
    d.ledger_minor,
    d.currency,
    d.detail,
    d.status,
    d.first_seen_at,
    d.last_seen_at,
    d.closed_at,
    d.opened_run_id,
    d.last_run_id,
    d.times_opened,
    o.committed_at as opened_at
from duebook.discrepancy as d
inner join duebook.provider_account as a using (provider_account)
left outer join duebook.reconciliation_run as o on d.opened_run_id = o.run_id
where
    (d.account_id = :account_id and d.payment_id = any(:payment_ids::text[]))
    or (d.provider_account = :provider_account and d.subject = any(:subjects::text[]))
order by d.first_seen_at, d.kind, d.subject
limit :row_limit::bigint;
