-- name: create_claim
-- Entries whose booked payment is looked for in this run, with the answer before and after.
create temporary table claim (
    entry_id text not null,
    payment_ref text,
    provider_payment_ref text,
    occurred_at timestamptz not null,
    is_applied boolean not null,
    old_account_id text,
    old_payment_id text,
    account_id text,
    payment_id text,
    candidates integer not null default 0
);
