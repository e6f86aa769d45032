-- name: create_position_before
-- Settled side of the affected payments over all provider accounts, before this run.
create temporary table position_before (
    account_id text not null,
    payment_id text not null,
    currency char(3) not null,
    captured_minor bigint not null,
    refunded_minor bigint not null,
    charged_back_minor bigint not null
);
