-- name: write_ledger_changes
-- The facts: what changed on each payment, before and after, and by which evidence.
insert into duebook.ledger_change (
    account_id, payment_id, run_id, provider_account, change_kind, before_status, after_status,
    currency, before_captured_minor, after_captured_minor, before_refunded_minor,
    after_refunded_minor, before_charged_back_minor, after_charged_back_minor, entry_id,
    entry_version, evidence_at, transition_no, is_silent
)
select
    d.account_id,
    d.payment_id,
    :run_id,
    :provider_account,
    d.change_kind,
    d.before_status,
    d.after_status,
    d.currency,
    d.before_captured_minor,
    d.after_captured_minor,
    d.before_refunded_minor,
    d.after_refunded_minor,
    d.before_charged_back_minor,
    d.after_charged_back_minor,
    d.entry_id,
    d.entry_version,
    d.evidence_at,
    d.transition_no,
    d.is_silent
from change_draft as d
order by d.account_id, d.payment_id, d.change_kind;
