-- name: create_gained_evidence
-- The last entry, in source order, that this run applied to each payment. Fresh: at least one of
-- those entries did not come from another payment.
create temporary table gained_evidence (
    account_id text not null,
    payment_id text not null,
    entry_id text not null,
    version integer not null,
    occurred_at timestamptz not null,
    is_fresh boolean not null
);
