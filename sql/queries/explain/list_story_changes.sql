-- name: list_story_changes
-- Ledger changes of the payments: what each run changed, before and after.
select
    c.account_id,
    c.payment_id,
    c.change_id,
    c.run_id,
    c.provider_account,
    a.provider,
    a.mode,
    a.notify_from,
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
    c.before_captured_minor <> c.after_captured_minor as is_capture,
    c.before_refunded_minor <> c.after_refunded_minor as is_refund,
    c.before_charged_back_minor <> c.after_charged_back_minor as is_dispute,
    c.entry_id,
    c.entry_version,
    c.evidence_at,
    c.transition_no,
    c.committed_at
from duebook.ledger_change as c
inner join duebook.provider_account as a using (provider_account)
where c.account_id = :account_id and c.payment_id = any(:payment_ids::text[])
order by c.change_id
limit :row_limit::bigint;
