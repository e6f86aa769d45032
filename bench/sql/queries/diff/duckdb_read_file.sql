-- name: duckdb_read_file
-- For DuckDB: the file as it was written, amounts in minor units.
create table told as
select
    f."Entry" as entry_id,
    f."Type" as provider_type,
    f."Batch" as batch_ref,
    f."Reference" as payment_ref,
    cast(round(f."Gross" * 100) as bigint) as gross_minor,
    cast(round(f."Fee" * 100) as bigint) as fee_minor,
    cast(round(f."Net" * 100) as bigint) as net_minor,
    f."Currency" as currency,
    f."Occurred" as occurred,
    f."Status" as entry_status
from settlement_file as f;
