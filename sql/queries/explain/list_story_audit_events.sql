-- name: list_story_audit_events
-- Decisions of the gate and acts of operators about the keys and payments of a story.
select
    e.audit_event_id,
    e.happened_at,
    e.actor,
    e.action,
    e.account_id,
    e.subject,
    e.detail
from duebook.audit_event as e
where
    e.subject = any(:subjects::text[])
    and (e.account_id = :account_id or e.account_id is null)
order by e.audit_event_id
limit :row_limit::bigint;
