-- Rules: what an operator configures and what a person decided. Read by the diff and by the gate.

create table duebook.environment (
    only_row boolean primary key default true,
    name text not null,
    is_test boolean not null,
    system_identifier bigint not null,
    database_oid oid not null,
    accepted_at timestamptz not null default clock_timestamp(),
    accepted_by text not null,
    constraint environment_has_one_row check (only_row),
    constraint environment_name_is_valid check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$')
);
comment on table duebook.environment is
'The one environment this database was accepted for. A copied database differs in cluster or oid and refuses to send until it is accepted again.';
comment on column duebook.environment.only_row is 'Always true: holds the table to one row.';
comment on column duebook.environment.name is 'Name of the environment; senders started under another name refuse to send.';
comment on column duebook.environment.is_test is 'True where a shifted clock (sweep --now) is allowed.';
comment on column duebook.environment.system_identifier is 'Cluster that was accepted (pg_control_system).';
comment on column duebook.environment.database_oid is 'Database of that cluster that was accepted (pg_database.oid).';
comment on column duebook.environment.accepted_at is 'When it was accepted.';
comment on column duebook.environment.accepted_by is 'Who accepted it.';

create table duebook.currency_exponent (
    provider text not null,
    currency char(3) not null,
    exponent smallint not null,
    primary key (provider, currency),
    constraint currency_is_upper_case check (currency ~ '^[A-Z]{3}$'),
    constraint exponent_is_between_0_and_4 check (exponent between 0 and 4)
);
comment on table duebook.currency_exponent is
'How many decimals one major unit has; provider * is ISO 4217, a provider of its own row differs from it. A currency without a row is unknown and its rows go to quarantine.';
comment on column duebook.currency_exponent.provider is 'Provider, or * for all that have no row of their own.';
comment on column duebook.currency_exponent.currency is 'ISO 4217 code, upper case.';
comment on column duebook.currency_exponent.exponent is 'Decimals: 2 for EUR, 0 for JPY, 3 for KWD.';

create table duebook.provider_account (
    provider_account text primary key,
    provider text not null,
    mode text not null default 'dry_run',
    notify_from timestamptz,
    settle_within interval not null default interval '3 days',
    zone text not null default 'UTC',
    look_back interval not null default interval '10 minutes',
    cursor_position timestamptz,
    last_full_as_of timestamptz,
    last_full_run_id bigint,
    seen_xid xid8,
    newest_entry_at timestamptz,
    settings jsonb not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    constraint provider_account_is_valid
    check (provider_account ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'),
    constraint mode_is_known check (mode in ('dry_run', 'shadow', 'live')),
    constraint live_has_notify_from check (mode <> 'live' or notify_from is not null),
    constraint settle_within_is_not_negative check (settle_within >= interval '0')
);
comment on table duebook.provider_account is
'One account at one payment provider. Full runs of it are serial: a run locks this row.';
comment on column duebook.provider_account.provider_account is 'Name, as in duebook.toml and on every row.';
comment on column duebook.provider_account.provider is 'Which source reads it: stripe, adyen, csv.';
comment on column duebook.provider_account.mode is 'dry_run: intents stay proposals; shadow: the same, compared with the old sender; live: intents are sent.';
comment on column duebook.provider_account.notify_from is 'Evidence that occurred before this instant is baseline and tells nobody.';
comment on column duebook.provider_account.settle_within is 'Promise of the provider: after expected_at plus this a payment without settlement is missing, before it is pending.';
comment on column duebook.provider_account.zone is 'IANA zone in which the provider counts days.';
comment on column duebook.provider_account.look_back is 'How far before the cursor an API is read again.';
comment on column duebook.provider_account.cursor_position is 'For an API: everything created up to here was seen once.';
comment on column duebook.provider_account.last_full_as_of is 'As-of of the newest committed full run; an older one is refused.';
comment on column duebook.provider_account.last_full_run_id is 'That run.';
comment on column duebook.provider_account.seen_xid is 'Imports from this transaction on were not surely seen by the last full run.';
comment on column duebook.provider_account.newest_entry_at is 'When the newest entry that a full run applied occurred.';
comment on column duebook.provider_account.settings is 'The rest of its block in duebook.toml: folder, pattern, columns, reference. No secret.';
comment on column duebook.provider_account.created_at is 'When it was first applied.';
comment on column duebook.provider_account.updated_at is 'When it was last changed.';

create table duebook.intent_kind (
    kind text primary key,
    enabled boolean not null,
    channel text not null,
    notify_after interval not null,
    give_up_after interval not null,
    is_superseded boolean not null,
    catch_up text not null,
    catch_up_window interval not null,
    max_occurrences integer not null,
    spread_per_minute integer not null,
    max_tries smallint not null,
    max_claims smallint not null,
    updated_at timestamptz not null default clock_timestamp(),
    constraint kind_is_valid check (kind ~ '^[a-z][a-z0-9_]{0,62}$'),
    constraint notify_after_is_not_negative check (notify_after >= interval '0'),
    constraint give_up_after_is_positive check (give_up_after > interval '0'),
    constraint catch_up_is_known check (catch_up in ('all', 'latest', 'skip')),
    constraint catch_up_window_is_two_sweeps check (catch_up_window >= interval '2 minutes'),
    constraint max_occurrences_is_positive check (max_occurrences > 0),
    constraint spread_is_positive check (spread_per_minute > 0),
    constraint limits_are_positive check (max_tries > 0 and max_claims > 0)
);
comment on table duebook.intent_kind is 'What is promised, by kind, with its policy; nothing here has a default in code.';
comment on column duebook.intent_kind.kind is 'payment_settled, payment_refunded, payment_disputed, payment_missing, payment_cleared.';
comment on column duebook.intent_kind.enabled is 'Whether ledger changes make intents of this kind.';
comment on column duebook.intent_kind.channel is 'Channel that carries it.';
comment on column duebook.intent_kind.notify_after is 'Told this long after the change was committed.';
comment on column duebook.intent_kind.give_up_after is 'Too late this long after notify_at: ends expired, too_late.';
comment on column duebook.intent_kind.is_superseded is 'Whether newer evidence on the same payment ends an unsent one.';
comment on column duebook.intent_kind.catch_up is 'What happens to missed ones: all, latest or skip.';
comment on column duebook.intent_kind.catch_up_window is 'How old a missed one may be and still be sent.';
comment on column duebook.intent_kind.max_occurrences is 'At most so many missed ones of one subject are sent.';
comment on column duebook.intent_kind.spread_per_minute is 'Rate while catching up.';
comment on column duebook.intent_kind.max_tries is 'Burnt tries before it ends expired, exhausted.';
comment on column duebook.intent_kind.max_claims is 'Claims without any result before it is held as poison.';
comment on column duebook.intent_kind.updated_at is 'When it was last changed.';

create table duebook.channel (
    channel text primary key,
    enabled boolean not null,
    reason text,
    updated_at timestamptz not null default clock_timestamp()
);
comment on table duebook.channel is 'Channels switched by an operator; a channel without a row is enabled.';
comment on column duebook.channel.channel is 'Name: email, noop.';
comment on column duebook.channel.enabled is 'False: its intents end expired, channel_disabled.';
comment on column duebook.channel.reason is 'Why it was switched.';
comment on column duebook.channel.updated_at is 'When it was switched.';

create table duebook.budget (
    channel text primary key,
    tokens integer,
    capacity integer,
    refill_per_minute integer,
    refilled_at timestamptz not null default clock_timestamp(),
    paused_until timestamptz,
    pause_reason text,
    consecutive_pauses integer not null default 0,
    constraint tokens_are_within_capacity check (tokens is null or tokens between 0 and capacity),
    constraint rate_is_whole_or_absent
    check (
        (tokens is null) = (capacity is null)
        and (capacity is null) = (refill_per_minute is null)
    )
) with (fillfactor = 50);
comment on table duebook.budget is 'Shared rate of one channel; a channel without a row is unlimited and not paused.';
comment on column duebook.budget.channel is 'Channel account that the rate belongs to.';
comment on column duebook.budget.tokens is 'Messages that may be claimed now; null: no rate limit.';
comment on column duebook.budget.capacity is 'Most tokens it can hold.';
comment on column duebook.budget.refill_per_minute is 'Tokens added a minute.';
comment on column duebook.budget.refilled_at is 'When tokens were last counted.';
comment on column duebook.budget.paused_until is 'Nothing is claimed or sent before; from Retry-After or a refusal of the whole channel.';
comment on column duebook.budget.pause_reason is 'Code of the answer that paused it.';
comment on column duebook.budget.consecutive_pauses is 'Pauses since the last accepted message; sets the back-off.';

create table duebook.contact (
    account_id text not null,
    channel text not null,
    address text not null,
    zone text not null,
    locale text not null default 'en',
    region text,
    imported_at timestamptz not null default clock_timestamp(),
    primary key (account_id, channel),
    constraint account_id_is_valid check (char_length(account_id) between 1 and 200)
);
comment on table duebook.contact is 'Where one account is told, by channel. Personal data: analysts never see it.';
comment on column duebook.contact.account_id is 'Customer account.';
comment on column duebook.contact.channel is 'Channel of the address.';
comment on column duebook.contact.address is 'E-mail address or number. Never logged.';
comment on column duebook.contact.zone is 'IANA zone of the recipient.';
comment on column duebook.contact.locale is 'Language of the message.';
comment on column duebook.contact.region is 'Region whose quiet hours apply.';
comment on column duebook.contact.imported_at is 'When it was last changed by an import.';

create table duebook.consent (
    account_id text not null,
    kind text not null,
    channel text not null,
    granted boolean not null,
    source text not null,
    decided_at timestamptz not null default clock_timestamp(),
    primary key (account_id, kind, channel)
);
comment on table duebook.consent is 'A decision of the recipient; without a row transactional notices are allowed.';
comment on column duebook.consent.account_id is 'Customer account.';
comment on column duebook.consent.kind is 'Kind of notice, or * for every kind.';
comment on column duebook.consent.channel is 'Channel, or * for every channel.';
comment on column duebook.consent.granted is 'False: ends expired, opted_out.';
comment on column duebook.consent.source is 'Where the decision came from.';
comment on column duebook.consent.decided_at is 'When it was taken.';

create table duebook.suppression (
    account_id text not null,
    channel text not null,
    reason text not null,
    suppressed_at timestamptz not null default clock_timestamp(),
    primary key (account_id, channel)
);
comment on table duebook.suppression is 'Accounts that a channel must not reach any more (bounce, complaint, refused address).';
comment on column duebook.suppression.account_id is 'Customer account.';
comment on column duebook.suppression.channel is 'Channel that is suppressed.';
comment on column duebook.suppression.reason is 'Code of the refusal.';
comment on column duebook.suppression.suppressed_at is 'Since when.';

create table duebook.quiet_hours (
    quiet_hours_id bigint generated always as identity primary key,
    region text,
    channel text,
    kind text,
    from_local time not null,
    until_local time not null,
    constraint window_is_not_empty check (from_local <> until_local)
);
comment on table duebook.quiet_hours is
'Local times of the recipient at which nothing is sent, half-open [from, until), over midnight when from is later; null columns match all.';
comment on column duebook.quiet_hours.quiet_hours_id is 'Identity.';
comment on column duebook.quiet_hours.region is 'Region it holds for; null: every region.';
comment on column duebook.quiet_hours.channel is 'Channel it holds for; null: every channel.';
comment on column duebook.quiet_hours.kind is 'Kind it holds for; null: every kind.';
comment on column duebook.quiet_hours.from_local is 'First local time that is quiet.';
comment on column duebook.quiet_hours.until_local is 'First local time that is not quiet any more.';

create table duebook.audit_event (
    audit_event_id bigint generated always as identity primary key,
    happened_at timestamptz not null default clock_timestamp(),
    actor text not null,
    action text not null,
    account_id text,
    subject text,
    detail jsonb not null default '{}'
);
create index audit_event_by_account on duebook.audit_event (account_id, happened_at);
create index audit_event_by_subject on duebook.audit_event (subject, happened_at);
comment on table duebook.audit_event is 'What the facts do not imply: decisions of the gate, policy changes, acts of operators. Append-only.';
comment on column duebook.audit_event.audit_event_id is 'Identity, in the order of writing.';
comment on column duebook.audit_event.happened_at is 'When.';
comment on column duebook.audit_event.actor is 'Who: an operator, or the part of Duebook.';
comment on column duebook.audit_event.action is 'What was done, as a verb.';
comment on column duebook.audit_event.account_id is 'Customer account concerned, if one.';
comment on column duebook.audit_event.subject is 'What it was done to: an operation key, a provider account, a kind.';
comment on column duebook.audit_event.detail is 'Before, after and why. No amount, no address.';
