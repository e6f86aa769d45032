-- name: list_discrepancies
-- Discrepancies that stand, the severest and oldest first; without a :status those that still want
-- somebody. total is how many there are beyond :row_limit.
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
    count(*) over () as total
from duebook_reports.discrepancies as d
where
    d.closed_at is null
    and (:provider_account::text is null or d.provider_account = :provider_account::text)
    and (:kind::text is null or d.kind = :kind::text)
    and case
        when :status::text is null then d.status in ('open', 'acknowledged')
        else d.status = :status::text
    end
order by
    array_position(array['critical', 'high', 'normal', 'low'], d.severity),
    d.first_seen_at,
    d.kind,
    d.subject
limit :row_limit::bigint;
