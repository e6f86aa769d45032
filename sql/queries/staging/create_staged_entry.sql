-- name: create_staged_entry
-- Where a source lays down what it read, typed, before anything is compared. A row that looks odd
-- on the fast way is marked suspect; then every row is examined.
create temporary table staged_entry (
    source_no integer not null,
    line_no bigint not null,
    entry_id text,
    entry_type text,
    provider_type text,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint,
    fee_minor bigint,
    net_minor bigint,
    currency char(3),
    net_currency char(3),
    entry_status text,
    occurred_at timestamptz,
    available_at timestamptz,
    source_order bigint,
    source text,
    body jsonb,
    source_hash bigint,
    is_suspect boolean not null default false
);
