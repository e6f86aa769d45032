-- name: list_run_changes
-- The first ledger changes of a run, each with the key of what it promised.
select
    c.account_id,
    c.payment_id,
    c.change_id,
    c.change_kind,
    c.before_status,
    c.after_status,
    c.currency,
    c.before_captured_minor,
    c.after_captured_minor,
    c.before_refunded_minor,
    c.after_refunded_minor,
    c.before_charged_back_minor,
    c.after_charged_back_minor,
    c.evidence_at,
    c.entry_id,
    c.entry_version,
    c.run_id,
    c.provider_account,
    a.provider,
    c.transition_no,
    c.committed_at
from duebook.ledger_change as c
inner join duebook.provider_account as a using (provider_account)
where c.run_id = :run_id
order by c.change_id
limit :row_limit::bigint;
