-- name: create_moved_entry
-- Entries that went from one payment to another, or to none; told: one of the two was told already.
create temporary table moved_entry (
    old_account_id text not null,
    old_payment_id text not null,
    account_id text,
    payment_id text,
    entry_id text not null,
    version integer not null,
    occurred_at timestamptz not null,
    is_told boolean not null
);
