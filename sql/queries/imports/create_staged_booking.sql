-- name: create_staged_booking
-- Booked payments of one ledger file, typed, before they are compared with the ledger.
create temporary table staged_booking (
    line_no bigint not null,
    account_id text,
    payment_id text,
    reference text,
    amount_minor bigint,
    currency char(3),
    booked_status text,
    expected_at timestamptz,
    provider_account text,
    is_void boolean,
    group_reference text,
    is_suspect boolean not null
);
