-- name: create_transition
-- Payments that became missing, or whose settlement came after all.
create temporary table transition (
    transition text not null,
    account_id text not null,
    payment_id text not null,
    is_locked boolean not null default false,
    primary key (account_id, payment_id)
);
