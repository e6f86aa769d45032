-- name: create_allocation_new
-- Shares of the entries of this run that pay a whole group of booked payments. Gone: a share that
-- the entry had before this run and has no more.
create temporary table allocation_new (
    entry_id text not null,
    account_id text not null,
    payment_id text not null,
    gross_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    is_gone boolean not null
);
