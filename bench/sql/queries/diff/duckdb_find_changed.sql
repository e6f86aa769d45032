-- name: duckdb_find_changed
-- For DuckDB: tonight's rows that last night's entries do not have like this.
select
    f.entry_id,
    f.provider_type,
    f.batch_ref,
    f.payment_ref,
    f.gross_minor,
    f.fee_minor,
    f.net_minor,
    f.currency,
    f.occurred,
    f.entry_status
from told as f
left join entries as e on f.entry_id = e.entry_id
where
    f.provider_type is distinct from e.provider_type
    or f.batch_ref is distinct from e.batch_ref
    or f.payment_ref is distinct from e.payment_ref
    or f.gross_minor is distinct from e.gross_minor
    or f.fee_minor is distinct from e.fee_minor
    or f.net_minor is distinct from e.net_minor
    or f.currency is distinct from e.currency
    or f.occurred is distinct from e.occurred
    or f.entry_status is distinct from e.entry_status;
