-- name: copy_staged_entries
-- Entries of an API, as they arrive.
copy staged_entry (
    source_no, line_no, entry_id, entry_type, provider_type, batch_ref, payment_ref,
    provider_payment_ref, gross_minor, fee_minor, net_minor, currency, net_currency, entry_status,
    occurred_at, available_at, source_order, source, body
) from stdin;
