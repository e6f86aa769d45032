-- name: create_affected_payment
-- Payments that gained, lost or saw changed an entry in this run.
create temporary table affected_payment (
    account_id text not null,
    payment_id text not null,
    primary key (account_id, payment_id)
);
