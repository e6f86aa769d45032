-- name: list_silent_changes
-- Ledger changes of a run that promised nothing, in groups of which one rule tells why; each group
-- has its newest evidence on either side of notify_from.
select
    c.change_kind,
    c.before_captured_minor <> c.after_captured_minor as is_capture,
    c.before_refunded_minor <> c.after_refunded_minor as is_refund,
    c.before_charged_back_minor <> c.after_charged_back_minor as is_dispute,
    max(c.evidence_at) as evidence_at,
    count(*) as change_count
from duebook.ledger_change as c
inner join duebook.provider_account as a using (provider_account)
where
    c.run_id = :run_id
    and not exists (
        select 1 from duebook.intent as i
        where i.account_id = c.account_id and i.change_id = c.change_id and i.run_id = c.run_id
    )
group by
    c.change_kind,
    is_capture,
    is_refund,
    is_dispute,
    c.evidence_at < a.notify_from
order by c.change_kind, is_capture, is_refund, is_dispute, max(c.evidence_at);
