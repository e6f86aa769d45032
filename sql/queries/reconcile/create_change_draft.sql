-- name: create_change_draft
-- Ledger changes of this run before they are written, with what decides about their intents.
create temporary table change_draft (
    account_id text not null,
    payment_id text not null,
    change_kind text not null,
    before_status text not null,
    after_status text not null,
    currency char(3) not null,
    before_captured_minor bigint not null,
    after_captured_minor bigint not null,
    before_refunded_minor bigint not null,
    after_refunded_minor bigint not null,
    before_charged_back_minor bigint not null,
    after_charged_back_minor bigint not null,
    entry_id text,
    entry_version integer,
    evidence_at timestamptz not null,
    transition_no integer not null default 0,
    expected_at timestamptz not null,
    is_silent boolean not null
);
