-- name: update_entries
-- Entries whose current version changed.
update duebook.settlement_entry as e
set
    version = a.version,
    entry_type = a.entry_type,
    provider_type = a.provider_type,
    batch_ref = a.batch_ref,
    payment_ref = a.payment_ref,
    provider_payment_ref = a.provider_payment_ref,
    gross_minor = a.gross_minor,
    fee_minor = a.fee_minor,
    net_minor = a.net_minor,
    currency = a.currency,
    net_currency = a.net_currency,
    entry_status = a.entry_status,
    occurred_at = a.occurred_at,
    available_at = a.available_at,
    source_order = a.source_order,
    source = a.source,
    file_id = s.file_id,
    line_no = a.line_no,
    source_hash = a.source_hash,
    account_id = c.account_id,
    payment_id = c.payment_id,
    run_id = :run_id
from applied_entry as a
inner join staged_source as s on a.source_no = s.source_no
inner join claim as c on a.entry_id = c.entry_id
where
    a.change = 'changed'
    and e.provider_account = :provider_account
    and e.entry_id = a.entry_id;
