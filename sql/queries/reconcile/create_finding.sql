-- name: create_finding
-- Differences that this run sees, before they are compared with the open discrepancies.
create temporary table finding (
    kind text not null,
    subject text not null,
    account_id text,
    payment_id text,
    batch_ref text,
    entry_id text,
    provider_minor bigint,
    ledger_minor bigint,
    currency char(3),
    detail text,
    severity text not null default 'normal',
    primary key (kind, subject)
);
