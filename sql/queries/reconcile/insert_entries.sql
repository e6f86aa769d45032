-- name: insert_entries
-- Entries that are seen for the first time.
insert into duebook.settlement_entry (
    provider_account, entry_id, version, entry_type, provider_type, batch_ref, payment_ref,
    provider_payment_ref, gross_minor, fee_minor, net_minor, currency, net_currency, entry_status,
    occurred_at,
    available_at,
    source_order,
    source,
    file_id,
    line_no,
    source_hash,
    account_id,
    payment_id,
    first_run_id, run_id
)
select
    :provider_account,
    a.entry_id,
    a.version,
    a.entry_type,
    a.provider_type,
    a.batch_ref,
    a.payment_ref,
    a.provider_payment_ref,
    a.gross_minor,
    a.fee_minor,
    a.net_minor,
    a.currency,
    a.net_currency,
    a.entry_status,
    a.occurred_at,
    a.available_at,
    a.source_order,
    a.source,
    s.file_id,
    a.line_no,
    a.source_hash,
    c.account_id,
    c.payment_id,
    :run_id,
    :run_id
from applied_entry as a
inner join staged_source as s on a.source_no = s.source_no
inner join claim as c on a.entry_id = c.entry_id
where a.change = 'new';
