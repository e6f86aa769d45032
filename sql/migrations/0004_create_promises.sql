-- Promises, the moving tables, and the endings.
-- An intent stands in exactly one moving table or has an outcome.

create table duebook.intent (
    account_id text not null,
    intent_id bigint generated always as identity,
    operation_key text not null,
    kind text not null,
    subject text not null,
    payment_id text,
    channel text not null,
    notify_at timestamptz not null,
    give_up_at timestamptz not null,
    provider_account text,
    run_id bigint,
    change_id bigint,
    ownership text not null,
    cohort_version integer not null default 0,
    -- squawk-ignore prefer-timestamp-tz
    intended_local timestamp,
    zone text,
    tzdb_version text,
    created_at timestamptz not null default clock_timestamp(),
    primary key (account_id, intent_id),
    constraint operation_key_is_unique unique (account_id, operation_key),
    constraint ownership_is_known check (ownership in ('dry_run', 'shadow', 'live')),
    constraint give_up_is_after_notify check (give_up_at > notify_at)
);
create index intent_by_subject on duebook.intent (account_id, subject, intent_id);
create index intent_by_run on duebook.intent (run_id) where run_id is not null;
comment on table duebook.intent is 'Something promised to an account. Immutable; a later due time is an intent_change.';
comment on column duebook.intent.account_id is 'Customer account.';
comment on column duebook.intent.intent_id is 'Identity, in the order of writing.';
comment on column duebook.intent.operation_key is 'The idempotency key, from the business action and its occurrence.';
comment on column duebook.intent.kind is 'Kind, see intent_kind.';
comment on column duebook.intent.subject is 'What it is about: payment:<payment>.';
comment on column duebook.intent.payment_id is 'Payment it is about, if one.';
comment on column duebook.intent.channel is 'Channel that is to carry it.';
comment on column duebook.intent.notify_at is 'UTC instant at which it was promised to become due.';
comment on column duebook.intent.give_up_at is 'From here on it is too late.';
comment on column duebook.intent.provider_account is 'Provider account whose evidence made it.';
comment on column duebook.intent.run_id is 'Run that made it.';
comment on column duebook.intent.change_id is 'Ledger change that made it.';
comment on column duebook.intent.ownership is 'Mode in force when the change committed; decides for ever whose key it is.';
comment on column duebook.intent.cohort_version is 'Version of the cohort that decided the mode; 0: the account''s own mode.';
comment on column duebook.intent.intended_local is 'Nominal local time, for promises on a calendar.';
comment on column duebook.intent.zone is 'Zone of the nominal local time.';
comment on column duebook.intent.tzdb_version is 'Time zone data that computed notify_at.';
comment on column duebook.intent.created_at is 'When it was written.';

create table duebook.intent_change (
    account_id text not null,
    intent_id bigint not null,
    intent_change_id bigint generated always as identity,
    due_at timestamptz not null,
    reason text not null,
    tzdb_version text,
    changed_at timestamptz not null default clock_timestamp(),
    primary key (account_id, intent_id, intent_change_id)
);
comment on table duebook.intent_change is 'A later due time of an intent; the newest counts. Append-only.';
comment on column duebook.intent_change.account_id is 'Customer account.';
comment on column duebook.intent_change.intent_id is 'Intent.';
comment on column duebook.intent_change.intent_change_id is 'Identity, in the order of writing.';
comment on column duebook.intent_change.due_at is 'New due time.';
comment on column duebook.intent_change.reason is 'Why: quiet_hours, budget, retry, tzdb, edited, resolved (what was in doubt was not sent).';
comment on column duebook.intent_change.tzdb_version is 'Time zone data that computed it.';
comment on column duebook.intent_change.changed_at is 'When.';

create table duebook.intent_request (
    account_id text not null,
    intent_id bigint not null,
    intent_request_id bigint generated always as identity,
    request text not null,
    reason text not null,
    requested_by text not null,
    requested_at timestamptz not null default clock_timestamp(),
    primary key (account_id, intent_id, intent_request_id),
    constraint request_is_known check (request in ('cancel', 'supersede', 'opt_out'))
);
comment on table duebook.intent_request is
'A wish to end an intent that a batch holds; the gate reads it before the next window. Append-only.';
comment on column duebook.intent_request.account_id is 'Customer account.';
comment on column duebook.intent_request.intent_id is 'Intent.';
comment on column duebook.intent_request.intent_request_id is 'Identity, in the order of writing.';
comment on column duebook.intent_request.request is 'cancel, supersede or opt_out.';
comment on column duebook.intent_request.reason is 'Why.';
comment on column duebook.intent_request.requested_by is 'Who.';
comment on column duebook.intent_request.requested_at is 'When.';

create table duebook.proposed (
    account_id text not null,
    intent_id bigint not null,
    proposed_at timestamptz not null default clock_timestamp(),
    primary key (account_id, intent_id)
);
comment on table duebook.proposed is 'Intents of an account in mode dry_run or shadow: proposals that no sweep can claim.';
comment on column duebook.proposed.account_id is 'Customer account.';
comment on column duebook.proposed.intent_id is 'Intent.';
comment on column duebook.proposed.proposed_at is 'When.';

create table duebook.due (
    account_id text not null,
    intent_id bigint not null,
    due_at timestamptz not null,
    kind text not null,
    channel text not null,
    give_up_at timestamptz not null,
    tries smallint not null default 0,
    suspicions smallint not null default 0,
    claims integer not null default 0,
    safe_retry_until timestamptz,
    primary key (account_id, intent_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
create index due_by_time on duebook.due (channel, due_at, intent_id) where suspicions < 2;
create index due_by_account on duebook.due (channel, account_id, due_at) where suspicions < 2;
create index due_alone on duebook.due (channel, due_at, intent_id) where suspicions >= 2;
comment on table duebook.due is 'Scheduled: intents waiting for their time, slim and hot. A claim deletes from here.';
comment on column duebook.due.account_id is 'Customer account.';
comment on column duebook.due.intent_id is 'Intent.';
comment on column duebook.due.due_at is 'When it may be claimed.';
comment on column duebook.due.kind is 'Kind, as in intent.';
comment on column duebook.due.channel is 'Channel, as in intent.';
comment on column duebook.due.give_up_at is 'As in intent.';
comment on column duebook.due.tries is 'Burnt tries: sends that were tried and failed.';
comment on column duebook.due.suspicions is 'Rescued batches in whose first unresulted window it stood; from 2 on it is claimed alone.';
comment on column duebook.due.claims is 'Claims so far, sends or not.';
comment on column duebook.due.safe_retry_until is 'Set when an earlier try may have been accepted: until when the channel recognises its repeat.';

create table duebook.claim_cursor (
    channel text primary key,
    account_id text not null
) with (fillfactor = 50);
comment on table duebook.claim_cursor is
'Where the fair pass of the claims of a channel goes on. Losing it costs a round of fairness, nothing else.';
comment on column duebook.claim_cursor.channel is 'Channel.';
comment on column duebook.claim_cursor.account_id is 'Last account that was served.';

create table duebook.batch (
    batch_id bigint generated always as identity primary key,
    token uuid not null,
    sender text not null,
    channel text not null,
    claimed_at timestamptz not null,
    lease_until timestamptz not null,
    max_age_until timestamptz not null,
    safe_retry_until timestamptz,
    flush_no integer not null default 0,
    window_start integer not null default 0,
    mark integer not null default 0,
    size integer not null,
    account_ids text[] not null,
    intent_ids bigint[] not null,
    attempt_nos integer[] not null,
    due_ats timestamptz[] not null,
    constraint mark_is_inside_the_batch
    check (0 <= window_start and window_start <= mark and mark <= size),
    constraint arrays_are_of_one_size check (
        cardinality(account_ids) = size
        and cardinality(intent_ids) = size
        and cardinality(attempt_nos) = size
        and cardinality(due_ats) = size
    )
) with (fillfactor = 50);
-- Read whole once a window: compressing them costs more than their few pages.
alter table duebook.batch
alter column account_ids set storage external,
alter column intent_ids set storage external,
alter column attempt_nos set storage external,
alter column due_ats set storage external;
create index batch_by_lease on duebook.batch (lease_until);
comment on table duebook.batch is 'Enqueued: intents one sender holds under a token and a lease, in their order.';
comment on column duebook.batch.batch_id is 'Identity.';
comment on column duebook.batch.token is 'Fences every flush: a batch without it was rescued.';
comment on column duebook.batch.sender is 'Who claimed it: host, process, DAG run.';
comment on column duebook.batch.channel is 'Channel of its intents.';
comment on column duebook.batch.claimed_at is 'When it was claimed.';
comment on column duebook.batch.lease_until is 'From here on rescue may take it.';
comment on column duebook.batch.max_age_until is 'A lease is never renewed beyond.';
comment on column duebook.batch.safe_retry_until is 'Until when an idempotent channel recognises a repeat of a first try made in this batch; null: never.';
comment on column duebook.batch.flush_no is 'Flushes applied; the next one must follow it.';
comment on column duebook.batch.window_start is 'First position of the window that may be in I/O.';
comment on column duebook.batch.mark is 'Positions below it may have been tried; those from it on never were.';
comment on column duebook.batch.size is 'Intents in it.';
comment on column duebook.batch.account_ids is 'Customer accounts, by position.';
comment on column duebook.batch.intent_ids is 'Intents, by position.';
comment on column duebook.batch.attempt_nos is 'Attempt numbers, by position.';
comment on column duebook.batch.due_ats is 'Due times, by position.';

create table duebook.batch_ended (
    batch_id bigint primary key,
    token uuid not null,
    sender text not null,
    how text not null,
    flush_no integer not null,
    size integer not null,
    claimed_at timestamptz not null,
    ended_at timestamptz not null default clock_timestamp(),
    constraint how_is_known check (how in ('finished', 'rescued', 'dismantled'))
);
comment on table duebook.batch_ended is 'How each batch ended: lets a repeated last flush be recognised. Append-only.';
comment on column duebook.batch_ended.batch_id is 'Batch.';
comment on column duebook.batch_ended.token is 'Its token.';
comment on column duebook.batch_ended.sender is 'Who held it.';
comment on column duebook.batch_ended.how is 'finished by its holder, rescued after its lease, or dismantled intent by intent.';
comment on column duebook.batch_ended.flush_no is 'Last flush that was applied.';
comment on column duebook.batch_ended.size is 'Intents that it held.';
comment on column duebook.batch_ended.claimed_at is 'When it was claimed.';
comment on column duebook.batch_ended.ended_at is 'When it ended.';

create table duebook.in_doubt (
    account_id text not null,
    intent_id bigint not null,
    attempt_no integer not null,
    batch_id bigint not null,
    cause text not null,
    due_at timestamptz not null,
    kind text not null,
    channel text not null,
    give_up_at timestamptz not null,
    tries smallint not null,
    claims integer not null,
    since timestamptz not null default clock_timestamp(),
    look_up_from timestamptz not null,
    primary key (account_id, intent_id)
);
comment on table duebook.in_doubt is 'Unknown: the provider may have accepted. Never resent blindly.';
comment on column duebook.in_doubt.account_id is 'Customer account.';
comment on column duebook.in_doubt.intent_id is 'Intent.';
comment on column duebook.in_doubt.attempt_no is 'Attempt whose end is not known.';
comment on column duebook.in_doubt.batch_id is 'Batch of that attempt.';
comment on column duebook.in_doubt.cause is 'Why: sender_died, retry_unsafe, rescue_failed, or the code of the channel.';
comment on column duebook.in_doubt.due_at is 'Its due time when it was claimed.';
comment on column duebook.in_doubt.kind is 'Kind, as in intent.';
comment on column duebook.in_doubt.channel is 'Channel, as in intent.';
comment on column duebook.in_doubt.give_up_at is 'As in intent.';
comment on column duebook.in_doubt.tries is 'Burnt tries so far.';
comment on column duebook.in_doubt.claims is 'Claims so far.';
comment on column duebook.in_doubt.since is 'Since when.';
comment on column duebook.in_doubt.look_up_from is 'A look-up''s "not known" counts only from here on.';

create table duebook.held (
    account_id text not null,
    intent_id bigint not null,
    cause text not null,
    due_at timestamptz not null,
    kind text not null,
    channel text not null,
    give_up_at timestamptz not null,
    tries smallint not null,
    claims integer not null,
    suspicions smallint not null default 0,
    safe_retry_until timestamptz,
    detail text,
    since timestamptz not null default clock_timestamp(),
    retest_at timestamptz not null default clock_timestamp(),
    primary key (account_id, intent_id)
);
create index held_by_retest on duebook.held (retest_at, account_id, intent_id);
comment on table duebook.held is 'Held: waits for its cause to clear; each sweep tests it again, and it ends too_late at its limit.';
comment on column duebook.held.account_id is 'Customer account.';
comment on column duebook.held.intent_id is 'Intent.';
comment on column duebook.held.cause is 'no_contact, no_consent, template, zone_unknown, kind_unknown, paused, environment, poison, attempt_conflict, rescue_failed.';
comment on column duebook.held.due_at is 'Due time it goes back with.';
comment on column duebook.held.kind is 'Kind, as in intent.';
comment on column duebook.held.channel is 'Channel, as in intent.';
comment on column duebook.held.give_up_at is 'As in intent.';
comment on column duebook.held.tries is 'Burnt tries so far.';
comment on column duebook.held.claims is 'Claims so far.';
comment on column duebook.held.suspicions is 'As in due.';
comment on column duebook.held.safe_retry_until is 'As in due.';
comment on column duebook.held.detail is 'What the cause needs: the template''s field, the zone''s name. No address, no amount.';
comment on column duebook.held.since is 'Since when.';
comment on column duebook.held.retest_at is 'When it is tested next.';

create table duebook.attempt (
    account_id text not null,
    intent_id bigint not null,
    attempt_no integer not null,
    batch_id bigint not null,
    position integer not null,
    due_at timestamptz not null,
    tries smallint not null,
    suspicions smallint not null,
    safe_retry_until timestamptz,
    claimed_at timestamptz not null,
    primary key (account_id, intent_id, attempt_no)
);
comment on table duebook.attempt is 'One claim of one intent, written by the claim before anything is tried. Append-only.';
comment on column duebook.attempt.account_id is 'Customer account.';
comment on column duebook.attempt.intent_id is 'Intent.';
comment on column duebook.attempt.attempt_no is 'Counts the claims of the intent, from 1.';
comment on column duebook.attempt.batch_id is 'Batch it was claimed in.';
comment on column duebook.attempt.position is 'Its order there, from 0; a gap is a row that was set aside.';
comment on column duebook.attempt.due_at is 'Its due time when claimed.';
comment on column duebook.attempt.tries is 'Burnt tries before it.';
comment on column duebook.attempt.suspicions is 'As in due, when claimed.';
comment on column duebook.attempt.safe_retry_until is 'As in due, when claimed.';
comment on column duebook.attempt.claimed_at is 'When.';

create table duebook.attempt_result (
    account_id text not null,
    intent_id bigint not null,
    attempt_no integer not null,
    batch_id bigint not null,
    flush_no integer not null,
    result text not null,
    reason text,
    provider_code text,
    provider_message_id text,
    finished_at timestamptz not null,
    is_late boolean not null default false,
    primary key (account_id, intent_id, attempt_no),
    constraint result_is_known
    check (
        result in ('sent', 'done', 'expired', 'deferred', 'failed', 'unknown', 'held', 'skipped')
    )
);
comment on table duebook.attempt_result is 'How an attempt went, written by the flush. Append-only, one per attempt.';
comment on column duebook.attempt_result.account_id is 'Customer account.';
comment on column duebook.attempt_result.intent_id is 'Intent.';
comment on column duebook.attempt_result.attempt_no is 'Attempt.';
comment on column duebook.attempt_result.batch_id is 'Batch of the attempt.';
comment on column duebook.attempt_result.flush_no is 'Flush that wrote it.';
comment on column duebook.attempt_result.result is 'sent, done, expired end the key; deferred and failed go back to due; unknown is in doubt; held waits; skipped: not this sender''s any more.';
comment on column duebook.attempt_result.reason is 'Why, in the gate''s words or the channel''s.';
comment on column duebook.attempt_result.provider_code is 'Code of the provider''s answer.';
comment on column duebook.attempt_result.provider_message_id is 'The provider''s id of the message.';
comment on column duebook.attempt_result.finished_at is 'When the answer was there.';
comment on column duebook.attempt_result.is_late is 'True when the batch had been rescued before the flush, or the key had ended otherwise.';

create table duebook.outcome (
    account_id text not null,
    operation_key text not null,
    intent_id bigint not null,
    kind text not null,
    payment_id text,
    result text not null,
    reason text,
    -- squawk-ignore prefer-timestamp-tz
    intended_local timestamp,
    zone text,
    due_at timestamptz not null,
    ended_at timestamptz not null default clock_timestamp(),
    attempt_no integer,
    provider_message_id text,
    primary key (account_id, operation_key),
    constraint outcome_result_is_known check (result in ('sent', 'done', 'expired')),
    constraint expired_has_a_reason check (result <> 'expired' or reason is not null)
);
comment on table duebook.outcome is 'How an operation key ended: permanent, exactly one. Append-only.';
comment on column duebook.outcome.account_id is 'Customer account.';
comment on column duebook.outcome.operation_key is 'Operation key.';
comment on column duebook.outcome.intent_id is 'Intent.';
comment on column duebook.outcome.kind is 'Kind, as in intent.';
comment on column duebook.outcome.payment_id is 'Payment, as in intent.';
comment on column duebook.outcome.result is 'sent, done (an internal act) or expired.';
comment on column duebook.outcome.reason is 'Why it expired: too_late, superseded, opted_out, suppressed, channel_disabled, settled_meanwhile, cancelled, exhausted, refused, dropped, skipped. Of what was sent: how its doubt ended, looked_up or resolved.';
comment on column duebook.outcome.intended_local is 'Nominal local time, for promises on a calendar.';
comment on column duebook.outcome.zone is 'Its zone.';
comment on column duebook.outcome.due_at is 'UTC due time that counted.';
comment on column duebook.outcome.ended_at is 'When it ended.';
comment on column duebook.outcome.attempt_no is 'Attempt that ended it; null when none was needed.';
comment on column duebook.outcome.provider_message_id is 'The provider''s id of the message, where sent.';
