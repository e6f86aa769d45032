-- name: store_versions
-- Appends every version as it was told.
insert into duebook.settlement_entry_version (
    provider_account, entry_id, version, is_current_when_stored, entry_type, provider_type,
    batch_ref, payment_ref, provider_payment_ref, gross_minor, fee_minor, net_minor, currency,
    net_currency, entry_status, occurred_at, available_at, source_order, source, file_id,
    line_no, run_id, body
)
select
    :provider_account,
    a.entry_id,
    a.version,
    a.change <> 'stale',
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
    :run_id,
    b.body
from applied_entry as a
inner join staged_source as s on a.source_no = s.source_no
inner join entry_body as b on a.source_no = b.source_no and a.line_no = b.line_no;
