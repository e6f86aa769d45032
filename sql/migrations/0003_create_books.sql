-- Books: what is expected (booked), what the evidence says (settled), how they differ.

create table duebook.ledger_payment (
    account_id text not null,
    payment_id text not null,
    reference text not null,
    amount_minor bigint not null,
    currency char(3) not null,
    booked_status text not null,
    expected_at timestamptz not null,
    provider_account text,
    is_void boolean not null default false,
    booked_version integer not null default 1,
    imported_at timestamptz not null default clock_timestamp(),
    imported_xid xid8 not null default pg_current_xact_id(),
    primary key (account_id, payment_id),
    constraint account_id_is_valid check (char_length(account_id) between 1 and 200),
    constraint payment_id_is_valid check (char_length(payment_id) between 1 and 200),
    constraint reference_is_valid check (char_length(reference) between 1 and 200)
);
create index ledger_payment_by_reference on duebook.ledger_payment (reference);
-- A person asks for a payment by its id alone; which account it is of, is the question.
create index ledger_payment_by_payment on duebook.ledger_payment (payment_id);
create index ledger_payment_by_provider_account
on duebook.ledger_payment (provider_account, expected_at);
create index ledger_payment_by_import on duebook.ledger_payment (imported_xid);
comment on table duebook.ledger_payment is
'The booked side of a payment: what the books expect. Written only by ledger import; runs only lock it.';
comment on column duebook.ledger_payment.account_id is 'Customer account.';
comment on column duebook.ledger_payment.payment_id is 'Payment, unique within the account.';
comment on column duebook.ledger_payment.reference is 'Reference that settlement entries carry.';
comment on column duebook.ledger_payment.amount_minor is 'Expected amount, minor units.';
comment on column duebook.ledger_payment.currency is 'Its currency.';
comment on column duebook.ledger_payment.booked_status is 'Status as the books say it, lower case.';
comment on column duebook.ledger_payment.expected_at is 'When the settlement is expected.';
comment on column duebook.ledger_payment.provider_account is 'Provider account that is to settle it; null: unrouted, never missing.';
comment on column duebook.ledger_payment.is_void is 'True: the books cancelled it.';
comment on column duebook.ledger_payment.booked_version is 'Counts changes by imports.';
comment on column duebook.ledger_payment.imported_at is 'When it was last changed by an import.';
comment on column duebook.ledger_payment.imported_xid is 'Transaction of that import: a run finds by it what it has not seen, in whatever order imports commit.';

create table duebook.retired_reference (
    reference text not null,
    account_id text not null,
    payment_id text not null,
    retired_xid xid8 not null default pg_current_xact_id(),
    retired_at timestamptz not null default clock_timestamp(),
    primary key (reference, account_id, payment_id, retired_at)
);
create index retired_reference_by_import on duebook.retired_reference (retired_xid);
comment on table duebook.retired_reference is
'A reference that a payment no longer has since an import changed it: entries that carry it are looked at again. Append-only.';
comment on column duebook.retired_reference.reference is 'The reference it had.';
comment on column duebook.retired_reference.account_id is 'Customer account.';
comment on column duebook.retired_reference.payment_id is 'Payment.';
comment on column duebook.retired_reference.retired_xid is 'Transaction of that import.';
comment on column duebook.retired_reference.retired_at is 'When.';

create table duebook.settled_position (
    account_id text not null,
    payment_id text not null,
    provider_account text not null,
    currency char(3) not null,
    captured_minor bigint not null,
    refunded_minor bigint not null,
    charged_back_minor bigint not null,
    pending_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    entry_count integer not null,
    run_id bigint not null,
    primary key (account_id, payment_id, provider_account, currency)
);
create index settled_position_by_provider_account
on duebook.settled_position (provider_account, account_id, payment_id);
comment on table duebook.settled_position is
'The settled side of a payment at one provider account, per currency. Written only by runs of that account; a payment''s settled side is their sum.';
comment on column duebook.settled_position.account_id is 'Customer account.';
comment on column duebook.settled_position.payment_id is 'Payment.';
comment on column duebook.settled_position.provider_account is 'Provider account whose evidence it sums.';
comment on column duebook.settled_position.currency is 'Gross currency of captured, refunded, charged back; net currency of fee and net.';
comment on column duebook.settled_position.captured_minor is 'Captured after partial-capture reversals, settled entries only.';
comment on column duebook.settled_position.refunded_minor is 'Refunded, positive.';
comment on column duebook.settled_position.charged_back_minor is 'Charged back less reversals, positive.';
comment on column duebook.settled_position.pending_minor is 'Announced, not yet settled, signed.';
comment on column duebook.settled_position.fee_minor is 'Fees of entries whose net currency this is.';
comment on column duebook.settled_position.net_minor is 'Net of entries whose net currency this is.';
comment on column duebook.settled_position.entry_count is 'Entries that it sums.';
comment on column duebook.settled_position.run_id is 'Run that last changed it.';

create table duebook.ledger_change (
    account_id text not null,
    change_id bigint generated always as identity,
    payment_id text not null,
    run_id bigint not null,
    provider_account text not null,
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
    committed_at timestamptz not null default clock_timestamp(),
    primary key (account_id, change_id),
    constraint change_kind_is_known check (change_kind in ('balance', 'missing', 'cleared')),
    constraint change_has_before_and_after_that_differ check (
        change_kind <> 'balance'
        or (before_status, before_captured_minor, before_refunded_minor, before_charged_back_minor)
        is distinct from
        (after_status, after_captured_minor, after_refunded_minor, after_charged_back_minor)
    )
);
create index ledger_change_by_payment on duebook.ledger_change (account_id, payment_id, change_id);
create index ledger_change_by_run on duebook.ledger_change (run_id);
comment on table duebook.ledger_change is
'Append-only fact: a run changed balance or status of a payment, or its settlement became missing or was cleared. Intents of reconciliation derive from it.';
comment on column duebook.ledger_change.account_id is 'Customer account.';
comment on column duebook.ledger_change.change_id is 'Identity, in the order of writing.';
comment on column duebook.ledger_change.payment_id is 'Payment.';
comment on column duebook.ledger_change.run_id is 'Run that changed it.';
comment on column duebook.ledger_change.provider_account is 'Provider account whose evidence changed it.';
comment on column duebook.ledger_change.change_kind is 'balance, or the transitions missing and cleared.';
comment on column duebook.ledger_change.before_status is 'Settled status before.';
comment on column duebook.ledger_change.after_status is 'Settled status after.';
comment on column duebook.ledger_change.currency is 'Currency of the amounts.';
comment on column duebook.ledger_change.before_captured_minor is 'Captured before, over all provider accounts.';
comment on column duebook.ledger_change.after_captured_minor is 'Captured after.';
comment on column duebook.ledger_change.before_refunded_minor is 'Refunded before.';
comment on column duebook.ledger_change.after_refunded_minor is 'Refunded after.';
comment on column duebook.ledger_change.before_charged_back_minor is 'Charged back before.';
comment on column duebook.ledger_change.after_charged_back_minor is 'Charged back after.';
comment on column duebook.ledger_change.entry_id is 'Last entry, in source order, among those the run applied to the payment; null for a transition.';
comment on column duebook.ledger_change.entry_version is 'Version of that entry.';
comment on column duebook.ledger_change.evidence_at is 'When the evidence occurred; for a transition when the payment was expected.';
comment on column duebook.ledger_change.transition_no is 'Counts missing and cleared transitions of the payment; 0 for a balance.';
comment on column duebook.ledger_change.committed_at is 'When it was written.';

create table duebook.discrepancy (
    provider_account text not null,
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
    status text not null default 'open',
    severity text not null default 'normal',
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    closed_at timestamptz,
    opened_run_id bigint not null,
    last_run_id bigint not null,
    times_opened integer not null default 1,
    primary key (provider_account, kind, subject),
    constraint discrepancy_kind_is_known check (
        kind in (
            'missing_in_ledger', 'missing_at_provider', 'amount_mismatch', 'currency_mismatch',
            'status_mismatch', 'duplicate_reference', 'unexplained_remainder'
        )
    ),
    constraint discrepancy_status_is_known
    check (status in ('open', 'acknowledged', 'resolved', 'ignored', 'written_off', 'closed'))
);
create index discrepancy_open
on duebook.discrepancy (provider_account, kind) where closed_at is null;
create index discrepancy_by_payment on duebook.discrepancy (account_id, payment_id);
comment on table duebook.discrepancy is
'One difference between the sides; it closes when the difference is gone and reopens if it returns.';
comment on column duebook.discrepancy.provider_account is 'Account whose run found it.';
comment on column duebook.discrepancy.kind is 'What differs.';
comment on column duebook.discrepancy.subject is 'payment:<account>:<payment>, entry:<entry> or batch:<batch>:<currency>; never null.';
comment on column duebook.discrepancy.account_id is 'Customer account, where a payment is concerned.';
comment on column duebook.discrepancy.payment_id is 'Payment, where one is concerned.';
comment on column duebook.discrepancy.batch_ref is 'Batch, where one is concerned.';
comment on column duebook.discrepancy.entry_id is 'Entry, where one is concerned.';
comment on column duebook.discrepancy.provider_minor is 'What the provider says, minor units.';
comment on column duebook.discrepancy.ledger_minor is 'What the books say, minor units.';
comment on column duebook.discrepancy.currency is 'Currency of the amounts.';
comment on column duebook.discrepancy.detail is 'What a reader needs to act: statuses, the other currency, the other payments.';
comment on column duebook.discrepancy.status is 'open until gone (closed) or dealt with by a person.';
comment on column duebook.discrepancy.severity is 'low, normal, high.';
comment on column duebook.discrepancy.first_seen_at is 'As-of of the run that opened it first.';
comment on column duebook.discrepancy.last_seen_at is 'As-of of the newest run that wrote it; while it is open every full run has seen it, and the report says so.';
comment on column duebook.discrepancy.closed_at is 'When a run no longer saw it; null while open.';
comment on column duebook.discrepancy.opened_run_id is 'Run that opened it, or reopened it.';
comment on column duebook.discrepancy.last_run_id is 'Newest run that wrote it.';
comment on column duebook.discrepancy.times_opened is 'Times it was opened.';
