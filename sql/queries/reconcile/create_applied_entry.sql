-- name: create_applied_entry
-- What differs from the current versions: new, changed, or stale (told by an older source).
create temporary table applied_entry (
    source_no integer not null,
    line_no bigint not null,
    entry_id text not null,
    entry_type text not null,
    provider_type text not null,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    currency char(3) not null,
    net_currency char(3) not null,
    entry_status text not null,
    occurred_at timestamptz not null,
    available_at timestamptz,
    source_order bigint not null,
    source text not null,
    body jsonb,
    source_hash bigint,
    change text not null,
    version integer not null,
    old_batch_ref text,
    old_account_id text,
    old_payment_id text
);
