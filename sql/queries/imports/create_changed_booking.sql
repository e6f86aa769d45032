-- name: create_changed_booking
-- Booked payments that are new or differ from the ledger.
create temporary table changed_booking (
    account_id text not null,
    payment_id text not null,
    reference text not null,
    amount_minor bigint not null,
    currency char(3) not null,
    booked_status text not null,
    expected_at timestamptz not null,
    provider_account text,
    is_void boolean not null,
    is_new boolean not null,
    old_reference text,
    group_reference text,
    old_group_reference text
);
