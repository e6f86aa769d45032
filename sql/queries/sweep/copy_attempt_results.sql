-- name: copy_attempt_results
-- The results of a window, in the flush that ends it.
copy duebook.attempt_result (
    account_id, intent_id, attempt_no, batch_id, flush_no, result, reason,
    provider_code, provider_message_id, finished_at
) from stdin;
