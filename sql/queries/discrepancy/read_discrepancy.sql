-- name: read_discrepancy
-- One discrepancy as the report has it.
select
    d.provider_account,
    d.kind,
    d.subject,
    d.status,
    d.severity,
    d.age_days,
    d.assignee,
    d.account_id,
    d.payment_id,
    d.batch_ref,
    d.entry_id,
    d.provider_amount,
    d.ledger_amount,
    d.difference,
    d.currency,
    d.detail,
    d.first_seen_at,
    d.last_seen_at,
    d.closed_at,
    d.times_opened,
    d.decided_by,
    d.decided_because,
    d.decided_at
from duebook_reports.discrepancies as d
where
    d.provider_account = :provider_account::text
    and d.kind = :kind::text
    and d.subject = :subject::text;
