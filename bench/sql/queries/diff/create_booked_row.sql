-- name: create_booked_row
-- Where the generated ledger CSV is put before it becomes payments.
create temporary table booked_row (
    account_id text not null,
    payment_id text not null,
    reference text not null,
    amount text not null,
    currency text not null,
    status text not null,
    expected_at timestamptz not null,
    provider_account text not null
) on commit drop;
