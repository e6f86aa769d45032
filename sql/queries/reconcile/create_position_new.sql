-- name: create_position_new
-- Settled side of the affected payments at this provider account, from its current entries.
create temporary table position_new (
    account_id text not null,
    payment_id text not null,
    currency char(3) not null,
    captured_minor bigint not null,
    refunded_minor bigint not null,
    charged_back_minor bigint not null,
    pending_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    entry_count integer not null
);
