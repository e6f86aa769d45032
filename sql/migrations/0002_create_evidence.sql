-- Evidence: what providers said, every version of it, and what could not be read.

create table duebook.reconciliation_run (
    run_id bigint generated always as identity primary key,
    provider_account text not null,
    scope text not null,
    mode text not null,
    as_of timestamptz not null,
    started_at timestamptz not null,
    committed_at timestamptz not null default clock_timestamp(),
    triggered_by text not null,
    entries_new integer not null default 0,
    entries_changed integer not null default 0,
    entries_unchanged integer not null default 0,
    entries_stale integer not null default 0,
    quarantined integer not null default 0,
    matched integer not null default 0,
    pending integer not null default 0,
    discrepancies jsonb not null default '{}',
    ledger_changes integer not null default 0,
    intents integer not null default 0,
    constraint scope_is_known check (scope in ('full', 'payments', 'window')),
    constraint run_mode_is_known check (mode in ('dry_run', 'shadow', 'live'))
);
create index reconciliation_run_by_account
on duebook.reconciliation_run (provider_account, run_id desc);
comment on table duebook.reconciliation_run is
'One committed comparison of one provider account, as of one instant, with a scope. Written by the transaction whose counts it holds.';
comment on column duebook.reconciliation_run.run_id is 'Identity.';
comment on column duebook.reconciliation_run.provider_account is 'Account that was compared.';
comment on column duebook.reconciliation_run.scope is 'full judges absence; payments and window open and close only what is inside.';
comment on column duebook.reconciliation_run.mode is 'Mode of the account when it ran.';
comment on column duebook.reconciliation_run.as_of is 'Instant for which pending and missing were judged.';
comment on column duebook.reconciliation_run.started_at is 'Database clock before the first byte was read.';
comment on column duebook.reconciliation_run.committed_at is 'Database clock when it was applied.';
comment on column duebook.reconciliation_run.triggered_by is 'Who or what asked: a DAG run id, an operator.';
comment on column duebook.reconciliation_run.entries_new is 'Entries seen for the first time.';
comment on column duebook.reconciliation_run.entries_changed is 'Entries with a new current version.';
comment on column duebook.reconciliation_run.entries_unchanged is 'Entries equal to their current version, rows of known files included.';
comment on column duebook.reconciliation_run.entries_stale is 'Entries that an older source described; stored, not current.';
comment on column duebook.reconciliation_run.quarantined is 'Rows kept in quarantine by this run.';
comment on column duebook.reconciliation_run.matched is 'Booked payments whose captured amount is the expected one.';
comment on column duebook.reconciliation_run.pending is 'Booked payments still inside the settlement promise.';
comment on column duebook.reconciliation_run.discrepancies is 'Open discrepancies of the account after the run, by kind.';
comment on column duebook.reconciliation_run.ledger_changes is 'Ledger changes written.';
comment on column duebook.reconciliation_run.intents is 'Intents written.';

create table duebook.settlement_file (
    file_id bigint generated always as identity primary key,
    provider_account text not null,
    sha256 text not null,
    name text not null,
    size_bytes bigint not null,
    row_count bigint not null,
    quarantined_count bigint not null,
    source_order bigint not null,
    run_id bigint not null,
    received_at timestamptz not null default clock_timestamp(),
    constraint settlement_file_is_taken_once unique (provider_account, sha256),
    constraint sha256_is_hex check (sha256 ~ '^[0-9a-f]{64}$')
);
comment on table duebook.settlement_file is 'A settlement file that was applied, known by its checksum and taken once.';
comment on column duebook.settlement_file.file_id is 'Identity.';
comment on column duebook.settlement_file.provider_account is 'Account it belongs to.';
comment on column duebook.settlement_file.sha256 is 'Checksum of its bytes, hex.';
comment on column duebook.settlement_file.name is 'File name without its folder.';
comment on column duebook.settlement_file.size_bytes is 'Its size.';
comment on column duebook.settlement_file.row_count is 'Data rows read, quarantined ones included.';
comment on column duebook.settlement_file.quarantined_count is 'Rows of it kept in quarantine.';
comment on column duebook.settlement_file.source_order is 'Order of what it says among files of the account.';
comment on column duebook.settlement_file.run_id is 'Run that took it.';
comment on column duebook.settlement_file.received_at is 'When.';

create table duebook.settlement_entry (
    provider_account text not null,
    entry_id text not null,
    version integer not null,
    entry_type text not null,
    provider_type text not null,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    currency char(3) not null,
    net_currency char(3) not null,
    entry_status text not null,
    occurred_at timestamptz not null,
    available_at timestamptz,
    source_order bigint not null,
    source text not null,
    file_id bigint,
    line_no bigint not null,
    source_hash bigint,
    account_id text,
    payment_id text,
    first_run_id bigint not null,
    run_id bigint not null,
    primary key (provider_account, entry_id),
    constraint entry_type_is_known check (
        entry_type in (
            'charge', 'refund', 'chargeback', 'chargeback_reversal', 'fee', 'payout',
            'transfer', 'reserve', 'conversion', 'adjustment', 'other'
        )
    ),
    constraint entry_status_is_known check (entry_status in ('pending', 'settled')),
    constraint version_is_positive check (version > 0),
    constraint claim_is_whole check ((account_id is null) = (payment_id is null))
);
create index settlement_entry_by_payment on duebook.settlement_entry (account_id, payment_id)
where account_id is not null;
create index settlement_entry_in_suspense
on duebook.settlement_entry (payment_ref, provider_account)
where
account_id is null
and (
    payment_ref is not null
    or entry_type in ('charge', 'refund', 'chargeback', 'chargeback_reversal')
);
create index settlement_entry_by_batch on duebook.settlement_entry (provider_account, batch_ref);
create index settlement_entry_pending on duebook.settlement_entry (provider_account, entry_id)
where entry_status = 'pending';
comment on table duebook.settlement_entry is
'One money row of a provider: its identity and current version. Old versions and bodies are in settlement_entry_version.';
comment on column duebook.settlement_entry.provider_account is 'Account it belongs to.';
comment on column duebook.settlement_entry.entry_id is 'Stable identity at the provider; made from its keys where the provider gives none.';
comment on column duebook.settlement_entry.version is 'Number of the current version, from 1.';
comment on column duebook.settlement_entry.entry_type is 'What it is, in Duebook''s words.';
comment on column duebook.settlement_entry.provider_type is 'What it is, as the provider wrote it.';
comment on column duebook.settlement_entry.batch_ref is 'Settlement batch or payout it belongs to, once known.';
comment on column duebook.settlement_entry.payment_ref is 'Reference that is matched with ledger_payment.reference.';
comment on column duebook.settlement_entry.provider_payment_ref is 'The provider''s own id of the payment.';
comment on column duebook.settlement_entry.gross_minor is 'Gross, signed, minor units of currency.';
comment on column duebook.settlement_entry.fee_minor is 'Fee, positive when a cost, minor units of net_currency.';
comment on column duebook.settlement_entry.net_minor is 'Net, signed, minor units of net_currency.';
comment on column duebook.settlement_entry.currency is 'Gross currency.';
comment on column duebook.settlement_entry.net_currency is 'Currency of fee and net.';
comment on column duebook.settlement_entry.entry_status is 'pending: announced, not yet available; settled: counts.';
comment on column duebook.settlement_entry.occurred_at is 'When it happened at the provider.';
comment on column duebook.settlement_entry.available_at is 'When the money is or was available.';
comment on column duebook.settlement_entry.source_order is 'Order of the source of the current version; an older source does not replace it.';
comment on column duebook.settlement_entry.source is 'File name, or api.';
comment on column duebook.settlement_entry.file_id is 'File of the current version, null for an API.';
comment on column duebook.settlement_entry.line_no is 'Line in that file, or position in the pull.';
comment on column duebook.settlement_entry.source_hash is 'Fingerprint of the row''s text as it was read: the same text again is unchanged without being read again. Null for an API.';
comment on column duebook.settlement_entry.account_id is 'Customer account whose payment claims it; null: in suspense or not of a payment.';
comment on column duebook.settlement_entry.payment_id is 'Payment that claims it; null: in suspense or not of a payment.';
comment on column duebook.settlement_entry.first_run_id is 'Run that saw it first.';
comment on column duebook.settlement_entry.run_id is 'Run that wrote the current version.';

create table duebook.settlement_entry_version (
    provider_account text not null,
    entry_id text not null,
    version integer not null,
    is_current_when_stored boolean not null,
    entry_type text not null,
    provider_type text not null,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    currency char(3) not null,
    net_currency char(3) not null,
    entry_status text not null,
    occurred_at timestamptz not null,
    available_at timestamptz,
    source_order bigint not null,
    source text not null,
    file_id bigint,
    line_no bigint not null,
    run_id bigint not null,
    stored_at timestamptz not null default clock_timestamp(),
    body jsonb,
    primary key (provider_account, entry_id, version, stored_at)
) partition by range (stored_at);
create table duebook.settlement_entry_version_default
partition of duebook.settlement_entry_version default;
comment on table duebook.settlement_entry_version is
'Every version of every entry, as it was told, with its body. Append-only, partitioned by the time of storing.';
comment on table duebook.settlement_entry_version_default is 'Versions for whose time no partition of its own was made.';
comment on column duebook.settlement_entry_version.provider_account is 'Account it belongs to.';
comment on column duebook.settlement_entry_version.entry_id is 'Entry.';
comment on column duebook.settlement_entry_version.version is 'Number of the version, from 1, in the order of storing.';
comment on column duebook.settlement_entry_version.is_current_when_stored is 'False when an older source told it after a newer one.';
comment on column duebook.settlement_entry_version.entry_type is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.provider_type is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.batch_ref is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.payment_ref is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.provider_payment_ref is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.gross_minor is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.fee_minor is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.net_minor is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.currency is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.net_currency is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.entry_status is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.occurred_at is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.available_at is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.source_order is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.source is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.file_id is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.line_no is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version.run_id is 'Run that stored it.';
comment on column duebook.settlement_entry_version.stored_at is 'When it was stored.';
comment on column duebook.settlement_entry_version.body is 'The row as the provider gave it, reduced to the fields that are no personal data.';
comment on column duebook.settlement_entry_version_default.provider_account is 'Account it belongs to.';
comment on column duebook.settlement_entry_version_default.entry_id is 'Entry.';
comment on column duebook.settlement_entry_version_default.version is 'Number of the version, from 1, in the order of storing.';
comment on column duebook.settlement_entry_version_default.is_current_when_stored is 'False when an older source told it after a newer one.';
comment on column duebook.settlement_entry_version_default.entry_type is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.provider_type is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.batch_ref is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.payment_ref is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.provider_payment_ref is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.gross_minor is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.fee_minor is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.net_minor is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.currency is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.net_currency is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.entry_status is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.occurred_at is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.available_at is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.source_order is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.source is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.file_id is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.line_no is 'As in settlement_entry.';
comment on column duebook.settlement_entry_version_default.run_id is 'Run that stored it.';
comment on column duebook.settlement_entry_version_default.stored_at is 'When it was stored.';
comment on column duebook.settlement_entry_version_default.body is 'The row as the provider gave it, reduced to the fields that are no personal data.';

create table duebook.quarantined_row (
    quarantined_row_id bigint generated always as identity primary key,
    source_kind text not null,
    provider_account text,
    run_id bigint,
    file_sha256 text,
    file_name text not null,
    line_no bigint not null,
    column_name text,
    value text,
    reason text not null,
    expected text not null,
    raw text,
    quarantined_at timestamptz not null default clock_timestamp(),
    constraint source_kind_is_known check (source_kind in ('settlement', 'ledger', 'contacts'))
);
create unique index quarantined_row_is_kept_once
on duebook.quarantined_row (
    source_kind,
    coalesce(provider_account, ''),
    coalesce(file_sha256, ''),
    line_no,
    coalesce(column_name, '')
);
comment on table duebook.quarantined_row is 'A row that could not be read, with where, what and why; the other rows of its file went on.';
comment on column duebook.quarantined_row.quarantined_row_id is 'Identity.';
comment on column duebook.quarantined_row.source_kind is 'Which import met it.';
comment on column duebook.quarantined_row.provider_account is 'Provider account, for settlements.';
comment on column duebook.quarantined_row.run_id is 'Run that met it, for settlements.';
comment on column duebook.quarantined_row.file_sha256 is 'Checksum of the file; null for an API.';
comment on column duebook.quarantined_row.file_name is 'File name without its folder, or api.';
comment on column duebook.quarantined_row.line_no is 'Physical line in the file (the header is line 1 where it stands first), or position in the pull.';
comment on column duebook.quarantined_row.column_name is 'Column at fault; null when the row as a whole is.';
comment on column duebook.quarantined_row.value is 'Its value as read. May hold an amount: never logged.';
comment on column duebook.quarantined_row.reason is 'What is wrong.';
comment on column duebook.quarantined_row.expected is 'What was expected.';
comment on column duebook.quarantined_row.raw is 'The whole row as read.';
comment on column duebook.quarantined_row.quarantined_at is 'When.';

create table duebook.settlement_batch (
    provider_account text not null,
    batch_ref text not null,
    currency char(3) not null,
    sum_minor bigint not null,
    payout_minor bigint not null,
    difference_minor bigint not null,
    entry_count integer not null,
    status text not null,
    is_itemisable boolean not null default true,
    is_complete boolean not null default true,
    run_id bigint not null,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (provider_account, batch_ref, currency),
    constraint difference_is_the_sum check (difference_minor = sum_minor + payout_minor),
    constraint batch_status_is_known
    check (status in ('closed', 'carried', 'open', 'not_closed', 'not_itemisable'))
);
comment on table duebook.settlement_batch is
'What a provider pays out together, per net currency; closes to zero, or says by how much it does not.';
comment on column duebook.settlement_batch.provider_account is 'Account it belongs to.';
comment on column duebook.settlement_batch.batch_ref is 'The provider''s name of the batch or payout.';
comment on column duebook.settlement_batch.currency is 'Net currency.';
comment on column duebook.settlement_batch.sum_minor is 'Sum of net over its entries without the payout.';
comment on column duebook.settlement_batch.payout_minor is 'Net of its payout rows (negative when paid out).';
comment on column duebook.settlement_batch.difference_minor is 'Their sum: 0 when the batch closes.';
comment on column duebook.settlement_batch.entry_count is 'Entries in it, the payout included.';
comment on column duebook.settlement_batch.status is 'closed, carried (no payout, 0), open (not yet paid out), not_closed, not_itemisable.';
comment on column duebook.settlement_batch.is_itemisable is 'False for a manual payout, whose entries the provider does not name.';
comment on column duebook.settlement_batch.is_complete is 'False while the provider may still name further entries of it.';
comment on column duebook.settlement_batch.run_id is 'Run that last changed it.';
comment on column duebook.settlement_batch.updated_at is 'When.';
