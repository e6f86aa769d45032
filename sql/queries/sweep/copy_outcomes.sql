-- name: copy_outcomes
-- The endings of a window. A key that has one already makes the whole flush start again, slowly.
copy duebook.outcome (
    account_id, operation_key, intent_id, kind, payment_id, result, reason,
    intended_local, zone, due_at, ended_at, attempt_no, provider_message_id
) from stdin;
