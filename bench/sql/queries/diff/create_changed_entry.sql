-- name: create_changed_entry
-- Where a dataframe puts the rows that differ, before it writes them.
create temporary table changed_entry (
    entry_id text not null,
    provider_type text not null,
    batch_ref text,
    payment_ref text,
    gross_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    currency text not null,
    occurred_at timestamptz not null,
    entry_status text not null
) on commit drop;
