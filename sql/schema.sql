-- The schema after every migration, function, view and grant: written by `make schema`
-- (python -m duebook.db.snapshot), compared by tests/db/test_snapshot.py. Not applied by anything.

CREATE SCHEMA duebook;

COMMENT ON SCHEMA duebook IS 'Duebook: evidence, books, promises, moving state and endings. Analysts read duebook_reports.';

CREATE SCHEMA duebook_reports;

COMMENT ON SCHEMA duebook_reports IS 'The stable reports. Columns are added, never renamed; no addresses, no raw bodies.';

CREATE FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with identity as (
        select
            (select system_identifier from pg_catalog.pg_control_system()) as system_identifier,
            (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
            as database_oid
    ),
    accepted as (
        insert into duebook.environment as e (
            name, is_test, system_identifier, database_oid, accepted_by
        )
        select p_name, p_is_test, i.system_identifier, i.database_oid, p_by
        from identity as i
        on conflict (only_row) do update
        set
            name = excluded.name,
            is_test = excluded.is_test,
            system_identifier = excluded.system_identifier,
            database_oid = excluded.database_oid,
            accepted_at = pg_catalog.clock_timestamp(),
            accepted_by = excluded.accepted_by
        where
            (e.name, e.is_test, e.system_identifier, e.database_oid)
            is distinct from
            (excluded.name, excluded.is_test, excluded.system_identifier, excluded.database_oid)
        returning name
    )
    insert into duebook.audit_event (actor, action, subject, detail)
    select p_by, 'accept_environment', name, pg_catalog.jsonb_build_object('is_test', p_is_test)
    from accepted;
$$;

COMMENT ON FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) IS 'Accepts this database as the named environment; audited; a no-op when it already is.';

CREATE FUNCTION duebook.environment_refusal(p_name text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        case
            when e.name is null then 'this database was never accepted as an environment'
            when e.name <> p_name
                then pg_catalog.format(
                    'this database was accepted as environment %s, the sender runs as %s', e.name, p_name
                )
            when
                e.system_identifier <> c.system_identifier
                or e.database_oid <> d.oid
                then pg_catalog.format(
                    'this database is a copy of environment %s and was not accepted here', e.name
                )
        end
    from pg_catalog.pg_control_system() as c
    inner join pg_catalog.pg_database as d on d.datname = pg_catalog.current_database()
    left join duebook.environment as e on e.only_row;
$$;

COMMENT ON FUNCTION duebook.environment_refusal(p_name text) IS 'Why a sender of the named environment must not send from this database; null when it may.';

CREATE TABLE duebook.alembic_version (
    version_num character varying(32) NOT NULL
);

COMMENT ON TABLE duebook.alembic_version IS 'The newest migration that this database was given.';

COMMENT ON COLUMN duebook.alembic_version.version_num IS 'Number of that migration.';

CREATE TABLE duebook.applied_object (
    path text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.applied_object IS 'Which SQL files this database was given, so that a changed function or view is applied again.';

COMMENT ON COLUMN duebook.applied_object.path IS 'The file, relative to sql/.';

COMMENT ON COLUMN duebook.applied_object.sha256 IS 'Digest of the file as it was applied.';

COMMENT ON COLUMN duebook.applied_object.applied_at IS 'When it was applied last.';

CREATE TABLE duebook.attempt (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    batch_id bigint NOT NULL,
    "position" integer NOT NULL,
    due_at timestamp with time zone NOT NULL,
    tries smallint NOT NULL,
    suspicions smallint NOT NULL,
    safe_retry_until timestamp with time zone,
    claimed_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.attempt IS 'One claim of one intent, written by the claim before anything is tried. Append-only.';

COMMENT ON COLUMN duebook.attempt.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.attempt.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.attempt.attempt_no IS 'Counts the claims of the intent, from 1.';

COMMENT ON COLUMN duebook.attempt.batch_id IS 'Batch it was claimed in.';

COMMENT ON COLUMN duebook.attempt."position" IS 'Its position there, from 0.';

COMMENT ON COLUMN duebook.attempt.due_at IS 'Its due time when claimed.';

COMMENT ON COLUMN duebook.attempt.tries IS 'Burnt tries before it.';

COMMENT ON COLUMN duebook.attempt.suspicions IS 'As in due, when claimed.';

COMMENT ON COLUMN duebook.attempt.safe_retry_until IS 'As in due, when claimed.';

COMMENT ON COLUMN duebook.attempt.claimed_at IS 'When.';

CREATE TABLE duebook.attempt_result (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    batch_id bigint NOT NULL,
    flush_no integer NOT NULL,
    result text NOT NULL,
    reason text,
    provider_code text,
    provider_message_id text,
    finished_at timestamp with time zone NOT NULL,
    is_late boolean DEFAULT false NOT NULL,
    CONSTRAINT result_is_known CHECK ((result = ANY (ARRAY['sent'::text, 'done'::text, 'expired'::text, 'deferred'::text, 'failed'::text, 'unknown'::text, 'held'::text, 'skipped'::text])))
);

COMMENT ON TABLE duebook.attempt_result IS 'How an attempt went, written by the flush. Append-only, one per attempt.';

COMMENT ON COLUMN duebook.attempt_result.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.attempt_result.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.attempt_result.attempt_no IS 'Attempt.';

COMMENT ON COLUMN duebook.attempt_result.batch_id IS 'Batch of the attempt.';

COMMENT ON COLUMN duebook.attempt_result.flush_no IS 'Flush that wrote it.';

COMMENT ON COLUMN duebook.attempt_result.result IS 'sent, done, expired end the key; deferred and failed go back to due; unknown is in doubt; held waits; skipped: not this sender''s any more.';

COMMENT ON COLUMN duebook.attempt_result.reason IS 'Why, in the gate''s words or the channel''s.';

COMMENT ON COLUMN duebook.attempt_result.provider_code IS 'Code of the provider''s answer.';

COMMENT ON COLUMN duebook.attempt_result.provider_message_id IS 'The provider''s id of the message.';

COMMENT ON COLUMN duebook.attempt_result.finished_at IS 'When the answer was there.';

COMMENT ON COLUMN duebook.attempt_result.is_late IS 'True when the batch had been rescued before the flush.';

CREATE TABLE duebook.audit_event (
    audit_event_id bigint NOT NULL,
    happened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    account_id text,
    subject text,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL
);

COMMENT ON TABLE duebook.audit_event IS 'What the facts do not imply: decisions of the gate, policy changes, acts of operators. Append-only.';

COMMENT ON COLUMN duebook.audit_event.audit_event_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.audit_event.happened_at IS 'When.';

COMMENT ON COLUMN duebook.audit_event.actor IS 'Who: an operator, or the part of Duebook.';

COMMENT ON COLUMN duebook.audit_event.action IS 'What was done, as a verb.';

COMMENT ON COLUMN duebook.audit_event.account_id IS 'Customer account concerned, if one.';

COMMENT ON COLUMN duebook.audit_event.subject IS 'What it was done to: an operation key, a provider account, a kind.';

COMMENT ON COLUMN duebook.audit_event.detail IS 'Before, after and why. No amount, no address.';

ALTER TABLE duebook.audit_event ALTER COLUMN audit_event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.audit_event_audit_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.batch (
    batch_id bigint NOT NULL,
    token uuid NOT NULL,
    sender text NOT NULL,
    channel text,
    claimed_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    max_age_until timestamp with time zone NOT NULL,
    flush_no integer DEFAULT 0 NOT NULL,
    window_start integer DEFAULT 0 NOT NULL,
    mark integer DEFAULT 0 NOT NULL,
    size integer NOT NULL,
    account_ids text[] NOT NULL,
    intent_ids bigint[] NOT NULL,
    attempt_nos integer[] NOT NULL,
    CONSTRAINT arrays_are_of_one_size CHECK (((cardinality(account_ids) = size) AND (cardinality(intent_ids) = size) AND (cardinality(attempt_nos) = size))),
    CONSTRAINT mark_is_inside_the_batch CHECK (((0 <= window_start) AND (window_start <= mark) AND (mark <= size)))
)
WITH (fillfactor='50');

COMMENT ON TABLE duebook.batch IS 'Enqueued: intents one sender holds under a token and a lease, in their order.';

COMMENT ON COLUMN duebook.batch.batch_id IS 'Identity.';

COMMENT ON COLUMN duebook.batch.token IS 'Fences every flush: a batch without it was rescued.';

COMMENT ON COLUMN duebook.batch.sender IS 'Who claimed it: host, process, DAG run.';

COMMENT ON COLUMN duebook.batch.channel IS 'Channel of its intents.';

COMMENT ON COLUMN duebook.batch.claimed_at IS 'When it was claimed.';

COMMENT ON COLUMN duebook.batch.lease_until IS 'From here on rescue may take it.';

COMMENT ON COLUMN duebook.batch.max_age_until IS 'A lease is never renewed beyond.';

COMMENT ON COLUMN duebook.batch.flush_no IS 'Flushes applied; the next one must follow it.';

COMMENT ON COLUMN duebook.batch.window_start IS 'First position of the window that may be in I/O.';

COMMENT ON COLUMN duebook.batch.mark IS 'Positions below it may have been tried; those from it on never were.';

COMMENT ON COLUMN duebook.batch.size IS 'Intents in it.';

COMMENT ON COLUMN duebook.batch.account_ids IS 'Customer accounts, by position.';

COMMENT ON COLUMN duebook.batch.intent_ids IS 'Intents, by position.';

COMMENT ON COLUMN duebook.batch.attempt_nos IS 'Attempt numbers, by position.';

ALTER TABLE duebook.batch ALTER COLUMN batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.batch_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.batch_ended (
    batch_id bigint NOT NULL,
    token uuid NOT NULL,
    sender text NOT NULL,
    how text NOT NULL,
    flush_no integer NOT NULL,
    size integer NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT how_is_known CHECK ((how = ANY (ARRAY['finished'::text, 'rescued'::text, 'dismantled'::text])))
);

COMMENT ON TABLE duebook.batch_ended IS 'How each batch ended: lets a repeated last flush be recognised. Append-only.';

COMMENT ON COLUMN duebook.batch_ended.batch_id IS 'Batch.';

COMMENT ON COLUMN duebook.batch_ended.token IS 'Its token.';

COMMENT ON COLUMN duebook.batch_ended.sender IS 'Who held it.';

COMMENT ON COLUMN duebook.batch_ended.how IS 'finished by its holder, rescued after its lease, or dismantled intent by intent.';

COMMENT ON COLUMN duebook.batch_ended.flush_no IS 'Last flush that was applied.';

COMMENT ON COLUMN duebook.batch_ended.size IS 'Intents that it held.';

COMMENT ON COLUMN duebook.batch_ended.claimed_at IS 'When it was claimed.';

COMMENT ON COLUMN duebook.batch_ended.ended_at IS 'When it ended.';

CREATE TABLE duebook.budget (
    channel text NOT NULL,
    tokens integer,
    capacity integer,
    refill_per_minute integer,
    refilled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    paused_until timestamp with time zone,
    pause_reason text,
    consecutive_pauses integer DEFAULT 0 NOT NULL,
    CONSTRAINT rate_is_whole_or_absent CHECK ((((tokens IS NULL) = (capacity IS NULL)) AND ((capacity IS NULL) = (refill_per_minute IS NULL)))),
    CONSTRAINT tokens_are_within_capacity CHECK (((tokens IS NULL) OR ((tokens >= 0) AND (tokens <= capacity))))
)
WITH (fillfactor='50');

COMMENT ON TABLE duebook.budget IS 'Shared rate of one channel; a channel without a row is unlimited and not paused.';

COMMENT ON COLUMN duebook.budget.channel IS 'Channel account that the rate belongs to.';

COMMENT ON COLUMN duebook.budget.tokens IS 'Messages that may be claimed now; null: no rate limit.';

COMMENT ON COLUMN duebook.budget.capacity IS 'Most tokens it can hold.';

COMMENT ON COLUMN duebook.budget.refill_per_minute IS 'Tokens added a minute.';

COMMENT ON COLUMN duebook.budget.refilled_at IS 'When tokens were last counted.';

COMMENT ON COLUMN duebook.budget.paused_until IS 'Nothing is claimed or sent before; from Retry-After or a refusal of the whole channel.';

COMMENT ON COLUMN duebook.budget.pause_reason IS 'Code of the answer that paused it.';

COMMENT ON COLUMN duebook.budget.consecutive_pauses IS 'Pauses since the last accepted message; sets the back-off.';

CREATE TABLE duebook.channel (
    channel text NOT NULL,
    enabled boolean NOT NULL,
    reason text,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.channel IS 'Channels switched by an operator; a channel without a row is enabled.';

COMMENT ON COLUMN duebook.channel.channel IS 'Name: email, noop.';

COMMENT ON COLUMN duebook.channel.enabled IS 'False: its intents end expired, channel_disabled.';

COMMENT ON COLUMN duebook.channel.reason IS 'Why it was switched.';

COMMENT ON COLUMN duebook.channel.updated_at IS 'When it was switched.';

CREATE TABLE duebook.consent (
    account_id text NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    granted boolean NOT NULL,
    source text NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.consent IS 'A decision of the recipient; without a row transactional notices are allowed.';

COMMENT ON COLUMN duebook.consent.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.consent.kind IS 'Kind of notice, or * for every kind.';

COMMENT ON COLUMN duebook.consent.channel IS 'Channel, or * for every channel.';

COMMENT ON COLUMN duebook.consent.granted IS 'False: ends expired, opted_out.';

COMMENT ON COLUMN duebook.consent.source IS 'Where the decision came from.';

COMMENT ON COLUMN duebook.consent.decided_at IS 'When it was taken.';

CREATE TABLE duebook.contact (
    account_id text NOT NULL,
    channel text NOT NULL,
    address text NOT NULL,
    zone text NOT NULL,
    locale text DEFAULT 'en'::text NOT NULL,
    region text,
    imported_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_id_is_valid CHECK (((char_length(account_id) >= 1) AND (char_length(account_id) <= 200)))
);

COMMENT ON TABLE duebook.contact IS 'Where one account is told, by channel. Personal data: analysts never see it.';

COMMENT ON COLUMN duebook.contact.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.contact.channel IS 'Channel of the address.';

COMMENT ON COLUMN duebook.contact.address IS 'E-mail address or number. Never logged.';

COMMENT ON COLUMN duebook.contact.zone IS 'IANA zone of the recipient.';

COMMENT ON COLUMN duebook.contact.locale IS 'Language of the message.';

COMMENT ON COLUMN duebook.contact.region IS 'Region whose quiet hours apply.';

COMMENT ON COLUMN duebook.contact.imported_at IS 'When it was last changed by an import.';

CREATE TABLE duebook.currency_exponent (
    provider text NOT NULL,
    currency character(3) NOT NULL,
    exponent smallint NOT NULL,
    CONSTRAINT currency_is_upper_case CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT exponent_is_between_0_and_4 CHECK (((exponent >= 0) AND (exponent <= 4)))
);

COMMENT ON TABLE duebook.currency_exponent IS 'How many decimals one major unit has; provider * is ISO 4217, a provider of its own row differs from it. A currency without a row is unknown and its rows go to quarantine.';

COMMENT ON COLUMN duebook.currency_exponent.provider IS 'Provider, or * for all that have no row of their own.';

COMMENT ON COLUMN duebook.currency_exponent.currency IS 'ISO 4217 code, upper case.';

COMMENT ON COLUMN duebook.currency_exponent.exponent IS 'Decimals: 2 for EUR, 0 for JPY, 3 for KWD.';

CREATE TABLE duebook.discrepancy (
    provider_account text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    account_id text,
    payment_id text,
    batch_ref text,
    entry_id text,
    provider_minor bigint,
    ledger_minor bigint,
    currency character(3),
    detail text,
    status text DEFAULT 'open'::text NOT NULL,
    severity text DEFAULT 'normal'::text NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    opened_run_id bigint NOT NULL,
    last_run_id bigint NOT NULL,
    times_opened integer DEFAULT 1 NOT NULL,
    CONSTRAINT discrepancy_kind_is_known CHECK ((kind = ANY (ARRAY['missing_in_ledger'::text, 'missing_at_provider'::text, 'amount_mismatch'::text, 'currency_mismatch'::text, 'status_mismatch'::text, 'duplicate_reference'::text, 'unexplained_remainder'::text]))),
    CONSTRAINT discrepancy_status_is_known CHECK ((status = ANY (ARRAY['open'::text, 'acknowledged'::text, 'resolved'::text, 'ignored'::text, 'written_off'::text, 'closed'::text])))
);

COMMENT ON TABLE duebook.discrepancy IS 'One difference between the sides; it closes when the difference is gone and reopens if it returns.';

COMMENT ON COLUMN duebook.discrepancy.provider_account IS 'Account whose run found it.';

COMMENT ON COLUMN duebook.discrepancy.kind IS 'What differs.';

COMMENT ON COLUMN duebook.discrepancy.subject IS 'payment:<account>:<payment>, entry:<entry> or batch:<batch>:<currency>; never null.';

COMMENT ON COLUMN duebook.discrepancy.account_id IS 'Customer account, where a payment is concerned.';

COMMENT ON COLUMN duebook.discrepancy.payment_id IS 'Payment, where one is concerned.';

COMMENT ON COLUMN duebook.discrepancy.batch_ref IS 'Batch, where one is concerned.';

COMMENT ON COLUMN duebook.discrepancy.entry_id IS 'Entry, where one is concerned.';

COMMENT ON COLUMN duebook.discrepancy.provider_minor IS 'What the provider says, minor units.';

COMMENT ON COLUMN duebook.discrepancy.ledger_minor IS 'What the books say, minor units.';

COMMENT ON COLUMN duebook.discrepancy.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook.discrepancy.detail IS 'What a reader needs to act: statuses, the other currency, the other payments.';

COMMENT ON COLUMN duebook.discrepancy.status IS 'open until gone (closed) or dealt with by a person.';

COMMENT ON COLUMN duebook.discrepancy.severity IS 'low, normal, high.';

COMMENT ON COLUMN duebook.discrepancy.first_seen_at IS 'As-of of the run that opened it first.';

COMMENT ON COLUMN duebook.discrepancy.last_seen_at IS 'As-of of the newest run that still saw it.';

COMMENT ON COLUMN duebook.discrepancy.closed_at IS 'When a run no longer saw it; null while open.';

COMMENT ON COLUMN duebook.discrepancy.opened_run_id IS 'Run that opened it, or reopened it.';

COMMENT ON COLUMN duebook.discrepancy.last_run_id IS 'Newest run that wrote it.';

COMMENT ON COLUMN duebook.discrepancy.times_opened IS 'Times it was opened.';

CREATE TABLE duebook.due (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    tries smallint DEFAULT 0 NOT NULL,
    claims smallint DEFAULT 0 NOT NULL,
    suspicions smallint DEFAULT 0 NOT NULL,
    safe_retry_until timestamp with time zone
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');

COMMENT ON TABLE duebook.due IS 'Scheduled: intents waiting for their time, slim and hot. A claim deletes from here.';

COMMENT ON COLUMN duebook.due.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.due.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.due.due_at IS 'When it may be claimed.';

COMMENT ON COLUMN duebook.due.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.due.channel IS 'Channel, as in intent.';

COMMENT ON COLUMN duebook.due.give_up_at IS 'As in intent.';

COMMENT ON COLUMN duebook.due.tries IS 'Burnt tries: sends that were tried and failed.';

COMMENT ON COLUMN duebook.due.claims IS 'Claims so far, sends or not.';

COMMENT ON COLUMN duebook.due.suspicions IS 'Rescued batches in whose first unresulted window it stood; from 2 on it is claimed alone.';

COMMENT ON COLUMN duebook.due.safe_retry_until IS 'Until when an idempotent channel recognises a repeat of the first try.';

CREATE TABLE duebook.environment (
    only_row boolean DEFAULT true NOT NULL,
    name text NOT NULL,
    is_test boolean NOT NULL,
    system_identifier bigint NOT NULL,
    database_oid oid NOT NULL,
    accepted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    accepted_by text NOT NULL,
    CONSTRAINT environment_has_one_row CHECK (only_row),
    CONSTRAINT environment_name_is_valid CHECK ((name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'::text))
);

COMMENT ON TABLE duebook.environment IS 'The one environment this database was accepted for. A copied database differs in cluster or oid and refuses to send until it is accepted again.';

COMMENT ON COLUMN duebook.environment.only_row IS 'Always true: holds the table to one row.';

COMMENT ON COLUMN duebook.environment.name IS 'Name of the environment; senders started under another name refuse to send.';

COMMENT ON COLUMN duebook.environment.is_test IS 'True where a shifted clock (sweep --now) is allowed.';

COMMENT ON COLUMN duebook.environment.system_identifier IS 'Cluster that was accepted (pg_control_system).';

COMMENT ON COLUMN duebook.environment.database_oid IS 'Database of that cluster that was accepted (pg_database.oid).';

COMMENT ON COLUMN duebook.environment.accepted_at IS 'When it was accepted.';

COMMENT ON COLUMN duebook.environment.accepted_by IS 'Who accepted it.';

CREATE TABLE duebook.held (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    cause text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    tries smallint NOT NULL,
    claims smallint NOT NULL,
    suspicions smallint DEFAULT 0 NOT NULL,
    safe_retry_until timestamp with time zone,
    detail text,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    retest_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.held IS 'Held: waits for its cause to clear; each sweep tests it again, and it ends too_late at its limit.';

COMMENT ON COLUMN duebook.held.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.held.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.held.cause IS 'no_contact, template, zone_unknown, paused, poison, attempt_conflict, environment.';

COMMENT ON COLUMN duebook.held.due_at IS 'Due time it goes back with.';

COMMENT ON COLUMN duebook.held.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.held.channel IS 'Channel, as in intent.';

COMMENT ON COLUMN duebook.held.give_up_at IS 'As in intent.';

COMMENT ON COLUMN duebook.held.tries IS 'Burnt tries so far.';

COMMENT ON COLUMN duebook.held.claims IS 'Claims so far.';

COMMENT ON COLUMN duebook.held.suspicions IS 'As in due.';

COMMENT ON COLUMN duebook.held.safe_retry_until IS 'As in due.';

COMMENT ON COLUMN duebook.held.detail IS 'What the cause needs: the template''s field, the zone''s name. No address, no amount.';

COMMENT ON COLUMN duebook.held.since IS 'Since when.';

COMMENT ON COLUMN duebook.held.retest_at IS 'When it is tested next.';

CREATE TABLE duebook.in_doubt (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    batch_id bigint NOT NULL,
    cause text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    tries smallint NOT NULL,
    claims smallint NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    look_up_from timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.in_doubt IS 'Unknown: the provider may have accepted. Never resent blindly.';

COMMENT ON COLUMN duebook.in_doubt.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.in_doubt.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.in_doubt.attempt_no IS 'Attempt whose end is not known.';

COMMENT ON COLUMN duebook.in_doubt.batch_id IS 'Batch of that attempt.';

COMMENT ON COLUMN duebook.in_doubt.cause IS 'Why: connection_lost, sender_died, timeout.';

COMMENT ON COLUMN duebook.in_doubt.due_at IS 'Its due time when it was claimed.';

COMMENT ON COLUMN duebook.in_doubt.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.in_doubt.channel IS 'Channel, as in intent.';

COMMENT ON COLUMN duebook.in_doubt.give_up_at IS 'As in intent.';

COMMENT ON COLUMN duebook.in_doubt.tries IS 'Burnt tries so far.';

COMMENT ON COLUMN duebook.in_doubt.claims IS 'Claims so far.';

COMMENT ON COLUMN duebook.in_doubt.since IS 'Since when.';

COMMENT ON COLUMN duebook.in_doubt.look_up_from IS 'A look-up''s "not known" counts only from here on.';

CREATE TABLE duebook.intent (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    operation_key text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    payment_id text,
    channel text NOT NULL,
    notify_at timestamp with time zone NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    provider_account text,
    run_id bigint,
    change_id bigint,
    ownership text NOT NULL,
    cohort_version integer DEFAULT 0 NOT NULL,
    intended_local timestamp without time zone,
    zone text,
    tzdb_version text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT give_up_is_after_notify CHECK ((give_up_at > notify_at)),
    CONSTRAINT ownership_is_known CHECK ((ownership = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text])))
);

COMMENT ON TABLE duebook.intent IS 'Something promised to an account. Immutable; a later due time is an intent_change.';

COMMENT ON COLUMN duebook.intent.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.intent.intent_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.intent.operation_key IS 'The idempotency key, from the business action and its occurrence.';

COMMENT ON COLUMN duebook.intent.kind IS 'Kind, see intent_kind.';

COMMENT ON COLUMN duebook.intent.subject IS 'What it is about: payment:<payment>.';

COMMENT ON COLUMN duebook.intent.payment_id IS 'Payment it is about, if one.';

COMMENT ON COLUMN duebook.intent.channel IS 'Channel that is to carry it.';

COMMENT ON COLUMN duebook.intent.notify_at IS 'UTC instant at which it was promised to become due.';

COMMENT ON COLUMN duebook.intent.give_up_at IS 'From here on it is too late.';

COMMENT ON COLUMN duebook.intent.provider_account IS 'Provider account whose evidence made it.';

COMMENT ON COLUMN duebook.intent.run_id IS 'Run that made it.';

COMMENT ON COLUMN duebook.intent.change_id IS 'Ledger change that made it.';

COMMENT ON COLUMN duebook.intent.ownership IS 'Mode in force when the change committed; decides for ever whose key it is.';

COMMENT ON COLUMN duebook.intent.cohort_version IS 'Version of the cohort that decided the mode; 0: the account''s own mode.';

COMMENT ON COLUMN duebook.intent.intended_local IS 'Nominal local time, for promises on a calendar.';

COMMENT ON COLUMN duebook.intent.zone IS 'Zone of the nominal local time.';

COMMENT ON COLUMN duebook.intent.tzdb_version IS 'Time zone data that computed notify_at.';

COMMENT ON COLUMN duebook.intent.created_at IS 'When it was written.';

CREATE TABLE duebook.intent_change (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    intent_change_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    tzdb_version text,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.intent_change IS 'A later due time of an intent; the newest counts. Append-only.';

COMMENT ON COLUMN duebook.intent_change.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.intent_change.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.intent_change.intent_change_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.intent_change.due_at IS 'New due time.';

COMMENT ON COLUMN duebook.intent_change.reason IS 'Why: quiet_hours, budget, retry, tzdb, edited.';

COMMENT ON COLUMN duebook.intent_change.tzdb_version IS 'Time zone data that computed it.';

COMMENT ON COLUMN duebook.intent_change.changed_at IS 'When.';

ALTER TABLE duebook.intent_change ALTER COLUMN intent_change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.intent_change_intent_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE duebook.intent ALTER COLUMN intent_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.intent_intent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.intent_kind (
    kind text NOT NULL,
    enabled boolean NOT NULL,
    channel text NOT NULL,
    notify_after interval NOT NULL,
    give_up_after interval NOT NULL,
    is_superseded boolean NOT NULL,
    catch_up text NOT NULL,
    catch_up_window interval NOT NULL,
    max_occurrences integer NOT NULL,
    spread_per_minute integer NOT NULL,
    max_tries smallint NOT NULL,
    max_claims smallint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT catch_up_is_known CHECK ((catch_up = ANY (ARRAY['all'::text, 'latest'::text, 'skip'::text]))),
    CONSTRAINT catch_up_window_is_two_sweeps CHECK ((catch_up_window >= '00:02:00'::interval)),
    CONSTRAINT give_up_after_is_positive CHECK ((give_up_after > '00:00:00'::interval)),
    CONSTRAINT kind_is_valid CHECK ((kind ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
    CONSTRAINT limits_are_positive CHECK (((max_tries > 0) AND (max_claims > 0))),
    CONSTRAINT max_occurrences_is_positive CHECK ((max_occurrences > 0)),
    CONSTRAINT notify_after_is_not_negative CHECK ((notify_after >= '00:00:00'::interval)),
    CONSTRAINT spread_is_positive CHECK ((spread_per_minute > 0))
);

COMMENT ON TABLE duebook.intent_kind IS 'What is promised, by kind, with its policy; nothing here has a default in code.';

COMMENT ON COLUMN duebook.intent_kind.kind IS 'payment_settled, payment_refunded, payment_disputed, payment_missing, payment_cleared.';

COMMENT ON COLUMN duebook.intent_kind.enabled IS 'Whether ledger changes make intents of this kind.';

COMMENT ON COLUMN duebook.intent_kind.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook.intent_kind.notify_after IS 'Told this long after the change was committed.';

COMMENT ON COLUMN duebook.intent_kind.give_up_after IS 'Too late this long after notify_at: ends expired, too_late.';

COMMENT ON COLUMN duebook.intent_kind.is_superseded IS 'Whether newer evidence on the same payment ends an unsent one.';

COMMENT ON COLUMN duebook.intent_kind.catch_up IS 'What happens to missed ones: all, latest or skip.';

COMMENT ON COLUMN duebook.intent_kind.catch_up_window IS 'How old a missed one may be and still be sent.';

COMMENT ON COLUMN duebook.intent_kind.max_occurrences IS 'At most so many missed ones of one subject are sent.';

COMMENT ON COLUMN duebook.intent_kind.spread_per_minute IS 'Rate while catching up.';

COMMENT ON COLUMN duebook.intent_kind.max_tries IS 'Burnt tries before it ends expired, exhausted.';

COMMENT ON COLUMN duebook.intent_kind.max_claims IS 'Claims without any result before it is held as poison.';

COMMENT ON COLUMN duebook.intent_kind.updated_at IS 'When it was last changed.';

CREATE TABLE duebook.intent_request (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    intent_request_id bigint NOT NULL,
    request text NOT NULL,
    reason text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT request_is_known CHECK ((request = ANY (ARRAY['cancel'::text, 'supersede'::text, 'opt_out'::text])))
);

COMMENT ON TABLE duebook.intent_request IS 'A wish to end an intent that a batch holds; the gate reads it before the next window. Append-only.';

COMMENT ON COLUMN duebook.intent_request.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.intent_request.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.intent_request.intent_request_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.intent_request.request IS 'cancel, supersede or opt_out.';

COMMENT ON COLUMN duebook.intent_request.reason IS 'Why.';

COMMENT ON COLUMN duebook.intent_request.requested_by IS 'Who.';

COMMENT ON COLUMN duebook.intent_request.requested_at IS 'When.';

ALTER TABLE duebook.intent_request ALTER COLUMN intent_request_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.intent_request_intent_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.ledger_change (
    account_id text NOT NULL,
    change_id bigint NOT NULL,
    payment_id text NOT NULL,
    run_id bigint NOT NULL,
    provider_account text NOT NULL,
    change_kind text NOT NULL,
    before_status text NOT NULL,
    after_status text NOT NULL,
    currency character(3) NOT NULL,
    before_captured_minor bigint NOT NULL,
    after_captured_minor bigint NOT NULL,
    before_refunded_minor bigint NOT NULL,
    after_refunded_minor bigint NOT NULL,
    before_charged_back_minor bigint NOT NULL,
    after_charged_back_minor bigint NOT NULL,
    entry_id text,
    entry_version integer,
    evidence_at timestamp with time zone NOT NULL,
    transition_no integer DEFAULT 0 NOT NULL,
    committed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT change_has_before_and_after_that_differ CHECK (((change_kind <> 'balance'::text) OR ((((before_status IS DISTINCT FROM after_status) OR (before_captured_minor IS DISTINCT FROM after_captured_minor)) OR (before_refunded_minor IS DISTINCT FROM after_refunded_minor)) OR (before_charged_back_minor IS DISTINCT FROM after_charged_back_minor)))),
    CONSTRAINT change_kind_is_known CHECK ((change_kind = ANY (ARRAY['balance'::text, 'missing'::text, 'cleared'::text])))
);

COMMENT ON TABLE duebook.ledger_change IS 'Append-only fact: a run changed balance or status of a payment, or its settlement became missing or was cleared. Intents of reconciliation derive from it.';

COMMENT ON COLUMN duebook.ledger_change.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.ledger_change.change_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.ledger_change.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook.ledger_change.run_id IS 'Run that changed it.';

COMMENT ON COLUMN duebook.ledger_change.provider_account IS 'Provider account whose evidence changed it.';

COMMENT ON COLUMN duebook.ledger_change.change_kind IS 'balance, or the transitions missing and cleared.';

COMMENT ON COLUMN duebook.ledger_change.before_status IS 'Settled status before.';

COMMENT ON COLUMN duebook.ledger_change.after_status IS 'Settled status after.';

COMMENT ON COLUMN duebook.ledger_change.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook.ledger_change.before_captured_minor IS 'Captured before, over all provider accounts.';

COMMENT ON COLUMN duebook.ledger_change.after_captured_minor IS 'Captured after.';

COMMENT ON COLUMN duebook.ledger_change.before_refunded_minor IS 'Refunded before.';

COMMENT ON COLUMN duebook.ledger_change.after_refunded_minor IS 'Refunded after.';

COMMENT ON COLUMN duebook.ledger_change.before_charged_back_minor IS 'Charged back before.';

COMMENT ON COLUMN duebook.ledger_change.after_charged_back_minor IS 'Charged back after.';

COMMENT ON COLUMN duebook.ledger_change.entry_id IS 'Last entry, in source order, among those the run applied to the payment; null for a transition.';

COMMENT ON COLUMN duebook.ledger_change.entry_version IS 'Version of that entry.';

COMMENT ON COLUMN duebook.ledger_change.evidence_at IS 'When the evidence occurred; for a transition when the payment was expected.';

COMMENT ON COLUMN duebook.ledger_change.transition_no IS 'Counts missing and cleared transitions of the payment; 0 for a balance.';

COMMENT ON COLUMN duebook.ledger_change.committed_at IS 'When it was written.';

ALTER TABLE duebook.ledger_change ALTER COLUMN change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.ledger_change_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.ledger_payment (
    account_id text NOT NULL,
    payment_id text NOT NULL,
    reference text NOT NULL,
    amount_minor bigint NOT NULL,
    currency character(3) NOT NULL,
    booked_status text NOT NULL,
    expected_at timestamp with time zone NOT NULL,
    provider_account text,
    is_void boolean DEFAULT false NOT NULL,
    booked_version integer DEFAULT 1 NOT NULL,
    imported_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_id_is_valid CHECK (((char_length(account_id) >= 1) AND (char_length(account_id) <= 200))),
    CONSTRAINT payment_id_is_valid CHECK (((char_length(payment_id) >= 1) AND (char_length(payment_id) <= 200))),
    CONSTRAINT reference_is_valid CHECK (((char_length(reference) >= 1) AND (char_length(reference) <= 200)))
);

COMMENT ON TABLE duebook.ledger_payment IS 'The booked side of a payment: what the books expect. Written only by ledger import; runs only lock it.';

COMMENT ON COLUMN duebook.ledger_payment.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.ledger_payment.payment_id IS 'Payment, unique within the account.';

COMMENT ON COLUMN duebook.ledger_payment.reference IS 'Reference that settlement entries carry.';

COMMENT ON COLUMN duebook.ledger_payment.amount_minor IS 'Expected amount, minor units.';

COMMENT ON COLUMN duebook.ledger_payment.currency IS 'Its currency.';

COMMENT ON COLUMN duebook.ledger_payment.booked_status IS 'Status as the books say it, lower case.';

COMMENT ON COLUMN duebook.ledger_payment.expected_at IS 'When the settlement is expected.';

COMMENT ON COLUMN duebook.ledger_payment.provider_account IS 'Provider account that is to settle it; null: unrouted, never missing.';

COMMENT ON COLUMN duebook.ledger_payment.is_void IS 'True: the books cancelled it.';

COMMENT ON COLUMN duebook.ledger_payment.booked_version IS 'Counts changes by imports.';

COMMENT ON COLUMN duebook.ledger_payment.imported_at IS 'When it was last changed by an import.';

CREATE TABLE duebook.outcome (
    account_id text NOT NULL,
    operation_key text NOT NULL,
    intent_id bigint NOT NULL,
    kind text NOT NULL,
    payment_id text,
    result text NOT NULL,
    reason text,
    intended_local timestamp without time zone,
    zone text,
    due_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempt_no integer,
    provider_message_id text,
    CONSTRAINT expired_has_a_reason CHECK (((result <> 'expired'::text) OR (reason IS NOT NULL))),
    CONSTRAINT outcome_result_is_known CHECK ((result = ANY (ARRAY['sent'::text, 'done'::text, 'expired'::text])))
);

COMMENT ON TABLE duebook.outcome IS 'How an operation key ended: permanent, exactly one. Append-only.';

COMMENT ON COLUMN duebook.outcome.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.outcome.operation_key IS 'Operation key.';

COMMENT ON COLUMN duebook.outcome.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.outcome.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.outcome.payment_id IS 'Payment, as in intent.';

COMMENT ON COLUMN duebook.outcome.result IS 'sent, done (an internal act) or expired.';

COMMENT ON COLUMN duebook.outcome.reason IS 'Why it expired: too_late, superseded, opted_out, suppressed, channel_disabled, settled_meanwhile, cancelled, exhausted, refused, dropped, skipped.';

COMMENT ON COLUMN duebook.outcome.intended_local IS 'Nominal local time, for promises on a calendar.';

COMMENT ON COLUMN duebook.outcome.zone IS 'Its zone.';

COMMENT ON COLUMN duebook.outcome.due_at IS 'UTC due time that counted.';

COMMENT ON COLUMN duebook.outcome.ended_at IS 'When it ended.';

COMMENT ON COLUMN duebook.outcome.attempt_no IS 'Attempt that ended it; null when none was needed.';

COMMENT ON COLUMN duebook.outcome.provider_message_id IS 'The provider''s id of the message, where sent.';

CREATE TABLE duebook.proposed (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    proposed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.proposed IS 'Intents of an account in mode dry_run or shadow: proposals that no sweep can claim.';

COMMENT ON COLUMN duebook.proposed.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.proposed.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.proposed.proposed_at IS 'When.';

CREATE TABLE duebook.provider_account (
    provider_account text NOT NULL,
    provider text NOT NULL,
    mode text DEFAULT 'dry_run'::text NOT NULL,
    notify_from timestamp with time zone,
    settle_within interval DEFAULT '3 days'::interval NOT NULL,
    zone text DEFAULT 'UTC'::text NOT NULL,
    look_back interval DEFAULT '00:10:00'::interval NOT NULL,
    cursor_position timestamp with time zone,
    last_full_as_of timestamp with time zone,
    last_full_run_id bigint,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT live_has_notify_from CHECK (((mode <> 'live'::text) OR (notify_from IS NOT NULL))),
    CONSTRAINT mode_is_known CHECK ((mode = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text]))),
    CONSTRAINT provider_account_is_valid CHECK ((provider_account ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'::text)),
    CONSTRAINT settle_within_is_not_negative CHECK ((settle_within >= '00:00:00'::interval))
);

COMMENT ON TABLE duebook.provider_account IS 'One account at one payment provider. Full runs of it are serial: a run locks this row.';

COMMENT ON COLUMN duebook.provider_account.provider_account IS 'Name, as in duebook.toml and on every row.';

COMMENT ON COLUMN duebook.provider_account.provider IS 'Which source reads it: stripe, adyen, csv.';

COMMENT ON COLUMN duebook.provider_account.mode IS 'dry_run: intents stay proposals; shadow: the same, compared with the old sender; live: intents are sent.';

COMMENT ON COLUMN duebook.provider_account.notify_from IS 'Evidence that occurred before this instant is baseline and tells nobody.';

COMMENT ON COLUMN duebook.provider_account.settle_within IS 'Promise of the provider: after expected_at plus this a payment without settlement is missing, before it is pending.';

COMMENT ON COLUMN duebook.provider_account.zone IS 'IANA zone in which the provider counts days.';

COMMENT ON COLUMN duebook.provider_account.look_back IS 'How far before the cursor an API is read again.';

COMMENT ON COLUMN duebook.provider_account.cursor_position IS 'For an API: everything created up to here was seen once.';

COMMENT ON COLUMN duebook.provider_account.last_full_as_of IS 'As-of of the newest committed full run; an older one is refused.';

COMMENT ON COLUMN duebook.provider_account.last_full_run_id IS 'That run.';

COMMENT ON COLUMN duebook.provider_account.settings IS 'The rest of its block in duebook.toml: folder, pattern, columns, reference. No secret.';

COMMENT ON COLUMN duebook.provider_account.created_at IS 'When it was first applied.';

COMMENT ON COLUMN duebook.provider_account.updated_at IS 'When it was last changed.';

CREATE TABLE duebook.quarantined_row (
    quarantined_row_id bigint NOT NULL,
    source_kind text NOT NULL,
    provider_account text,
    run_id bigint,
    file_sha256 text,
    file_name text NOT NULL,
    line_no bigint NOT NULL,
    column_name text,
    value text,
    reason text NOT NULL,
    expected text NOT NULL,
    raw text,
    quarantined_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT source_kind_is_known CHECK ((source_kind = ANY (ARRAY['settlement'::text, 'ledger'::text, 'contacts'::text])))
);

COMMENT ON TABLE duebook.quarantined_row IS 'A row that could not be read, with where, what and why; the other rows of its file went on.';

COMMENT ON COLUMN duebook.quarantined_row.quarantined_row_id IS 'Identity.';

COMMENT ON COLUMN duebook.quarantined_row.source_kind IS 'Which import met it.';

COMMENT ON COLUMN duebook.quarantined_row.provider_account IS 'Provider account, for settlements.';

COMMENT ON COLUMN duebook.quarantined_row.run_id IS 'Run that met it, for settlements.';

COMMENT ON COLUMN duebook.quarantined_row.file_sha256 IS 'Checksum of the file; null for an API.';

COMMENT ON COLUMN duebook.quarantined_row.file_name IS 'File name without its folder, or api.';

COMMENT ON COLUMN duebook.quarantined_row.line_no IS 'Physical line in the file (the header is line 1 where it stands first), or position in the pull.';

COMMENT ON COLUMN duebook.quarantined_row.column_name IS 'Column at fault; null when the row as a whole is.';

COMMENT ON COLUMN duebook.quarantined_row.value IS 'Its value as read. May hold an amount: never logged.';

COMMENT ON COLUMN duebook.quarantined_row.reason IS 'What is wrong.';

COMMENT ON COLUMN duebook.quarantined_row.expected IS 'What was expected.';

COMMENT ON COLUMN duebook.quarantined_row.raw IS 'The whole row as read.';

COMMENT ON COLUMN duebook.quarantined_row.quarantined_at IS 'When.';

ALTER TABLE duebook.quarantined_row ALTER COLUMN quarantined_row_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.quarantined_row_quarantined_row_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.quiet_hours (
    quiet_hours_id bigint NOT NULL,
    region text,
    channel text,
    kind text,
    from_local time without time zone NOT NULL,
    until_local time without time zone NOT NULL,
    CONSTRAINT window_is_not_empty CHECK ((from_local <> until_local))
);

COMMENT ON TABLE duebook.quiet_hours IS 'Local times of the recipient at which nothing is sent, half-open [from, until), over midnight when from is later; null columns match all.';

COMMENT ON COLUMN duebook.quiet_hours.quiet_hours_id IS 'Identity.';

COMMENT ON COLUMN duebook.quiet_hours.region IS 'Region it holds for; null: every region.';

COMMENT ON COLUMN duebook.quiet_hours.channel IS 'Channel it holds for; null: every channel.';

COMMENT ON COLUMN duebook.quiet_hours.kind IS 'Kind it holds for; null: every kind.';

COMMENT ON COLUMN duebook.quiet_hours.from_local IS 'First local time that is quiet.';

COMMENT ON COLUMN duebook.quiet_hours.until_local IS 'First local time that is not quiet any more.';

ALTER TABLE duebook.quiet_hours ALTER COLUMN quiet_hours_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.quiet_hours_quiet_hours_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.reconciliation_run (
    run_id bigint NOT NULL,
    provider_account text NOT NULL,
    scope text NOT NULL,
    mode text NOT NULL,
    as_of timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    committed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    triggered_by text NOT NULL,
    entries_new integer DEFAULT 0 NOT NULL,
    entries_changed integer DEFAULT 0 NOT NULL,
    entries_unchanged integer DEFAULT 0 NOT NULL,
    entries_stale integer DEFAULT 0 NOT NULL,
    quarantined integer DEFAULT 0 NOT NULL,
    matched integer DEFAULT 0 NOT NULL,
    pending integer DEFAULT 0 NOT NULL,
    discrepancies jsonb DEFAULT '{}'::jsonb NOT NULL,
    ledger_changes integer DEFAULT 0 NOT NULL,
    intents integer DEFAULT 0 NOT NULL,
    CONSTRAINT run_mode_is_known CHECK ((mode = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text]))),
    CONSTRAINT scope_is_known CHECK ((scope = ANY (ARRAY['full'::text, 'payments'::text, 'window'::text])))
);

COMMENT ON TABLE duebook.reconciliation_run IS 'One committed comparison of one provider account, as of one instant, with a scope. Written by the transaction whose counts it holds.';

COMMENT ON COLUMN duebook.reconciliation_run.run_id IS 'Identity.';

COMMENT ON COLUMN duebook.reconciliation_run.provider_account IS 'Account that was compared.';

COMMENT ON COLUMN duebook.reconciliation_run.scope IS 'full judges absence; payments and window open and close only what is inside.';

COMMENT ON COLUMN duebook.reconciliation_run.mode IS 'Mode of the account when it ran.';

COMMENT ON COLUMN duebook.reconciliation_run.as_of IS 'Instant for which pending and missing were judged.';

COMMENT ON COLUMN duebook.reconciliation_run.started_at IS 'Database clock before the first byte was read.';

COMMENT ON COLUMN duebook.reconciliation_run.committed_at IS 'Database clock when it was applied.';

COMMENT ON COLUMN duebook.reconciliation_run.triggered_by IS 'Who or what asked: a DAG run id, an operator.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_new IS 'Entries seen for the first time.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_changed IS 'Entries with a new current version.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_unchanged IS 'Entries equal to their current version, rows of known files included.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_stale IS 'Entries that an older source described; stored, not current.';

COMMENT ON COLUMN duebook.reconciliation_run.quarantined IS 'Rows kept in quarantine by this run.';

COMMENT ON COLUMN duebook.reconciliation_run.matched IS 'Booked payments whose captured amount is the expected one.';

COMMENT ON COLUMN duebook.reconciliation_run.pending IS 'Booked payments still inside the settlement promise.';

COMMENT ON COLUMN duebook.reconciliation_run.discrepancies IS 'Open discrepancies of the account after the run, by kind.';

COMMENT ON COLUMN duebook.reconciliation_run.ledger_changes IS 'Ledger changes written.';

COMMENT ON COLUMN duebook.reconciliation_run.intents IS 'Intents written.';

ALTER TABLE duebook.reconciliation_run ALTER COLUMN run_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.reconciliation_run_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.settled_position (
    account_id text NOT NULL,
    payment_id text NOT NULL,
    provider_account text NOT NULL,
    currency character(3) NOT NULL,
    captured_minor bigint NOT NULL,
    refunded_minor bigint NOT NULL,
    charged_back_minor bigint NOT NULL,
    pending_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    entry_count integer NOT NULL,
    run_id bigint NOT NULL
);

COMMENT ON TABLE duebook.settled_position IS 'The settled side of a payment at one provider account, per currency. Written only by runs of that account; a payment''s settled side is their sum.';

COMMENT ON COLUMN duebook.settled_position.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.settled_position.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook.settled_position.provider_account IS 'Provider account whose evidence it sums.';

COMMENT ON COLUMN duebook.settled_position.currency IS 'Gross currency of captured, refunded, charged back; net currency of fee and net.';

COMMENT ON COLUMN duebook.settled_position.captured_minor IS 'Captured after partial-capture reversals, settled entries only.';

COMMENT ON COLUMN duebook.settled_position.refunded_minor IS 'Refunded, positive.';

COMMENT ON COLUMN duebook.settled_position.charged_back_minor IS 'Charged back less reversals, positive.';

COMMENT ON COLUMN duebook.settled_position.pending_minor IS 'Announced, not yet settled, signed.';

COMMENT ON COLUMN duebook.settled_position.fee_minor IS 'Fees of entries whose net currency this is.';

COMMENT ON COLUMN duebook.settled_position.net_minor IS 'Net of entries whose net currency this is.';

COMMENT ON COLUMN duebook.settled_position.entry_count IS 'Entries that it sums.';

COMMENT ON COLUMN duebook.settled_position.run_id IS 'Run that last changed it.';

CREATE TABLE duebook.settlement_batch (
    provider_account text NOT NULL,
    batch_ref text NOT NULL,
    currency character(3) NOT NULL,
    sum_minor bigint NOT NULL,
    payout_minor bigint NOT NULL,
    difference_minor bigint NOT NULL,
    entry_count integer NOT NULL,
    status text NOT NULL,
    is_itemisable boolean DEFAULT true NOT NULL,
    run_id bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT batch_status_is_known CHECK ((status = ANY (ARRAY['closed'::text, 'carried'::text, 'open'::text, 'not_closed'::text, 'not_itemisable'::text]))),
    CONSTRAINT difference_is_the_sum CHECK ((difference_minor = (sum_minor + payout_minor)))
);

COMMENT ON TABLE duebook.settlement_batch IS 'What a provider pays out together, per net currency; closes to zero, or says by how much it does not.';

COMMENT ON COLUMN duebook.settlement_batch.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_batch.batch_ref IS 'The provider''s name of the batch or payout.';

COMMENT ON COLUMN duebook.settlement_batch.currency IS 'Net currency.';

COMMENT ON COLUMN duebook.settlement_batch.sum_minor IS 'Sum of net over its entries without the payout.';

COMMENT ON COLUMN duebook.settlement_batch.payout_minor IS 'Net of its payout rows (negative when paid out).';

COMMENT ON COLUMN duebook.settlement_batch.difference_minor IS 'Their sum: 0 when the batch closes.';

COMMENT ON COLUMN duebook.settlement_batch.entry_count IS 'Entries in it, the payout included.';

COMMENT ON COLUMN duebook.settlement_batch.status IS 'closed, carried (no payout, 0), open (not yet paid out), not_closed, not_itemisable.';

COMMENT ON COLUMN duebook.settlement_batch.is_itemisable IS 'False for a manual payout, whose entries the provider does not name.';

COMMENT ON COLUMN duebook.settlement_batch.run_id IS 'Run that last changed it.';

COMMENT ON COLUMN duebook.settlement_batch.updated_at IS 'When.';

CREATE TABLE duebook.settlement_entry (
    provider_account text NOT NULL,
    entry_id text NOT NULL,
    version integer NOT NULL,
    entry_type text NOT NULL,
    provider_type text NOT NULL,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    currency character(3) NOT NULL,
    net_currency character(3) NOT NULL,
    entry_status text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone,
    source_order bigint NOT NULL,
    source text NOT NULL,
    file_id bigint,
    line_no bigint NOT NULL,
    account_id text,
    payment_id text,
    first_run_id bigint NOT NULL,
    run_id bigint NOT NULL,
    CONSTRAINT claim_is_whole CHECK (((account_id IS NULL) = (payment_id IS NULL))),
    CONSTRAINT entry_status_is_known CHECK ((entry_status = ANY (ARRAY['pending'::text, 'settled'::text]))),
    CONSTRAINT entry_type_is_known CHECK ((entry_type = ANY (ARRAY['charge'::text, 'refund'::text, 'chargeback'::text, 'chargeback_reversal'::text, 'fee'::text, 'payout'::text, 'transfer'::text, 'reserve'::text, 'conversion'::text, 'adjustment'::text, 'other'::text]))),
    CONSTRAINT version_is_positive CHECK ((version > 0))
);

COMMENT ON TABLE duebook.settlement_entry IS 'One money row of a provider: its identity and current version. Old versions and bodies are in settlement_entry_version.';

COMMENT ON COLUMN duebook.settlement_entry.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_entry.entry_id IS 'Stable identity at the provider; made from its keys where the provider gives none.';

COMMENT ON COLUMN duebook.settlement_entry.version IS 'Number of the current version, from 1.';

COMMENT ON COLUMN duebook.settlement_entry.entry_type IS 'What it is, in Duebook''s words.';

COMMENT ON COLUMN duebook.settlement_entry.provider_type IS 'What it is, as the provider wrote it.';

COMMENT ON COLUMN duebook.settlement_entry.batch_ref IS 'Settlement batch or payout it belongs to, once known.';

COMMENT ON COLUMN duebook.settlement_entry.payment_ref IS 'Reference that is matched with ledger_payment.reference.';

COMMENT ON COLUMN duebook.settlement_entry.provider_payment_ref IS 'The provider''s own id of the payment.';

COMMENT ON COLUMN duebook.settlement_entry.gross_minor IS 'Gross, signed, minor units of currency.';

COMMENT ON COLUMN duebook.settlement_entry.fee_minor IS 'Fee, positive when a cost, minor units of net_currency.';

COMMENT ON COLUMN duebook.settlement_entry.net_minor IS 'Net, signed, minor units of net_currency.';

COMMENT ON COLUMN duebook.settlement_entry.currency IS 'Gross currency.';

COMMENT ON COLUMN duebook.settlement_entry.net_currency IS 'Currency of fee and net.';

COMMENT ON COLUMN duebook.settlement_entry.entry_status IS 'pending: announced, not yet available; settled: counts.';

COMMENT ON COLUMN duebook.settlement_entry.occurred_at IS 'When it happened at the provider.';

COMMENT ON COLUMN duebook.settlement_entry.available_at IS 'When the money is or was available.';

COMMENT ON COLUMN duebook.settlement_entry.source_order IS 'Order of the source of the current version; an older source does not replace it.';

COMMENT ON COLUMN duebook.settlement_entry.source IS 'File name, or api.';

COMMENT ON COLUMN duebook.settlement_entry.file_id IS 'File of the current version, null for an API.';

COMMENT ON COLUMN duebook.settlement_entry.line_no IS 'Line in that file, or position in the pull.';

COMMENT ON COLUMN duebook.settlement_entry.account_id IS 'Customer account whose payment claims it; null: in suspense or not of a payment.';

COMMENT ON COLUMN duebook.settlement_entry.payment_id IS 'Payment that claims it; null: in suspense or not of a payment.';

COMMENT ON COLUMN duebook.settlement_entry.first_run_id IS 'Run that saw it first.';

COMMENT ON COLUMN duebook.settlement_entry.run_id IS 'Run that wrote the current version.';

CREATE TABLE duebook.settlement_entry_version (
    provider_account text NOT NULL,
    entry_id text NOT NULL,
    version integer NOT NULL,
    is_current_when_stored boolean NOT NULL,
    entry_type text NOT NULL,
    provider_type text NOT NULL,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    currency character(3) NOT NULL,
    net_currency character(3) NOT NULL,
    entry_status text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone,
    source_order bigint NOT NULL,
    source text NOT NULL,
    file_id bigint,
    line_no bigint NOT NULL,
    run_id bigint NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    body jsonb
)
PARTITION BY RANGE (stored_at);

COMMENT ON TABLE duebook.settlement_entry_version IS 'Every version of every entry, as it was told, with its body. Append-only, partitioned by the time of storing.';

COMMENT ON COLUMN duebook.settlement_entry_version.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_entry_version.entry_id IS 'Entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.version IS 'Number of the version, from 1, in the order of storing.';

COMMENT ON COLUMN duebook.settlement_entry_version.is_current_when_stored IS 'False when an older source told it after a newer one.';

COMMENT ON COLUMN duebook.settlement_entry_version.entry_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.provider_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.batch_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.provider_payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.gross_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.fee_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.net_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.net_currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.entry_status IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.occurred_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.available_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.source_order IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.source IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.file_id IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.line_no IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.run_id IS 'Run that stored it.';

COMMENT ON COLUMN duebook.settlement_entry_version.stored_at IS 'When it was stored.';

COMMENT ON COLUMN duebook.settlement_entry_version.body IS 'The row as the provider gave it, reduced to the fields that are no personal data.';

CREATE TABLE duebook.settlement_entry_version_default (
    provider_account text CONSTRAINT settlement_entry_version_provider_account_not_null NOT NULL,
    entry_id text CONSTRAINT settlement_entry_version_entry_id_not_null NOT NULL,
    version integer CONSTRAINT settlement_entry_version_version_not_null NOT NULL,
    is_current_when_stored boolean CONSTRAINT settlement_entry_version_is_current_when_stored_not_null NOT NULL,
    entry_type text CONSTRAINT settlement_entry_version_entry_type_not_null NOT NULL,
    provider_type text CONSTRAINT settlement_entry_version_provider_type_not_null NOT NULL,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint CONSTRAINT settlement_entry_version_gross_minor_not_null NOT NULL,
    fee_minor bigint CONSTRAINT settlement_entry_version_fee_minor_not_null NOT NULL,
    net_minor bigint CONSTRAINT settlement_entry_version_net_minor_not_null NOT NULL,
    currency character(3) CONSTRAINT settlement_entry_version_currency_not_null NOT NULL,
    net_currency character(3) CONSTRAINT settlement_entry_version_net_currency_not_null NOT NULL,
    entry_status text CONSTRAINT settlement_entry_version_entry_status_not_null NOT NULL,
    occurred_at timestamp with time zone CONSTRAINT settlement_entry_version_occurred_at_not_null NOT NULL,
    available_at timestamp with time zone,
    source_order bigint CONSTRAINT settlement_entry_version_source_order_not_null NOT NULL,
    source text CONSTRAINT settlement_entry_version_source_not_null NOT NULL,
    file_id bigint,
    line_no bigint CONSTRAINT settlement_entry_version_line_no_not_null NOT NULL,
    run_id bigint CONSTRAINT settlement_entry_version_run_id_not_null NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT settlement_entry_version_stored_at_not_null NOT NULL,
    body jsonb
);

COMMENT ON TABLE duebook.settlement_entry_version_default IS 'Versions for whose time no partition of its own was made.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.entry_id IS 'Entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.version IS 'Number of the version, from 1, in the order of storing.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.is_current_when_stored IS 'False when an older source told it after a newer one.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.entry_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.provider_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.batch_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.provider_payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.gross_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.fee_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.net_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.net_currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.entry_status IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.occurred_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.available_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.source_order IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.source IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.file_id IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.line_no IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.run_id IS 'Run that stored it.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.stored_at IS 'When it was stored.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.body IS 'The row as the provider gave it, reduced to the fields that are no personal data.';

CREATE TABLE duebook.settlement_file (
    file_id bigint NOT NULL,
    provider_account text NOT NULL,
    sha256 text NOT NULL,
    name text NOT NULL,
    size_bytes bigint NOT NULL,
    row_count bigint NOT NULL,
    quarantined_count bigint NOT NULL,
    source_order bigint NOT NULL,
    run_id bigint NOT NULL,
    received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT sha256_is_hex CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text))
);

COMMENT ON TABLE duebook.settlement_file IS 'A settlement file that was applied, known by its checksum and taken once.';

COMMENT ON COLUMN duebook.settlement_file.file_id IS 'Identity.';

COMMENT ON COLUMN duebook.settlement_file.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_file.sha256 IS 'Checksum of its bytes, hex.';

COMMENT ON COLUMN duebook.settlement_file.name IS 'File name without its folder.';

COMMENT ON COLUMN duebook.settlement_file.size_bytes IS 'Its size.';

COMMENT ON COLUMN duebook.settlement_file.row_count IS 'Data rows read, quarantined ones included.';

COMMENT ON COLUMN duebook.settlement_file.quarantined_count IS 'Rows of it kept in quarantine.';

COMMENT ON COLUMN duebook.settlement_file.source_order IS 'Order of what it says among files of the account.';

COMMENT ON COLUMN duebook.settlement_file.run_id IS 'Run that took it.';

COMMENT ON COLUMN duebook.settlement_file.received_at IS 'When.';

ALTER TABLE duebook.settlement_file ALTER COLUMN file_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.settlement_file_file_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.suppression (
    account_id text NOT NULL,
    channel text NOT NULL,
    reason text NOT NULL,
    suppressed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.suppression IS 'Accounts that a channel must not reach any more (bounce, complaint, refused address).';

COMMENT ON COLUMN duebook.suppression.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.suppression.channel IS 'Channel that is suppressed.';

COMMENT ON COLUMN duebook.suppression.reason IS 'Code of the refusal.';

COMMENT ON COLUMN duebook.suppression.suppressed_at IS 'Since when.';

ALTER TABLE ONLY duebook.settlement_entry_version ATTACH PARTITION duebook.settlement_entry_version_default DEFAULT;

ALTER TABLE ONLY duebook.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY duebook.applied_object
    ADD CONSTRAINT applied_object_pk PRIMARY KEY (path);

ALTER TABLE ONLY duebook.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (account_id, intent_id, attempt_no);

ALTER TABLE ONLY duebook.attempt_result
    ADD CONSTRAINT attempt_result_pkey PRIMARY KEY (account_id, intent_id, attempt_no);

ALTER TABLE ONLY duebook.audit_event
    ADD CONSTRAINT audit_event_pkey PRIMARY KEY (audit_event_id);

ALTER TABLE ONLY duebook.batch_ended
    ADD CONSTRAINT batch_ended_pkey PRIMARY KEY (batch_id);

ALTER TABLE ONLY duebook.batch
    ADD CONSTRAINT batch_pkey PRIMARY KEY (batch_id);

ALTER TABLE ONLY duebook.budget
    ADD CONSTRAINT budget_pkey PRIMARY KEY (channel);

ALTER TABLE ONLY duebook.channel
    ADD CONSTRAINT channel_pkey PRIMARY KEY (channel);

ALTER TABLE ONLY duebook.consent
    ADD CONSTRAINT consent_pkey PRIMARY KEY (account_id, kind, channel);

ALTER TABLE ONLY duebook.contact
    ADD CONSTRAINT contact_pkey PRIMARY KEY (account_id, channel);

ALTER TABLE ONLY duebook.currency_exponent
    ADD CONSTRAINT currency_exponent_pkey PRIMARY KEY (provider, currency);

ALTER TABLE ONLY duebook.discrepancy
    ADD CONSTRAINT discrepancy_pkey PRIMARY KEY (provider_account, kind, subject);

ALTER TABLE ONLY duebook.due
    ADD CONSTRAINT due_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.environment
    ADD CONSTRAINT environment_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY duebook.held
    ADD CONSTRAINT held_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.in_doubt
    ADD CONSTRAINT in_doubt_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.intent_change
    ADD CONSTRAINT intent_change_pkey PRIMARY KEY (account_id, intent_id, intent_change_id);

ALTER TABLE ONLY duebook.intent_kind
    ADD CONSTRAINT intent_kind_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY duebook.intent
    ADD CONSTRAINT intent_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.intent_request
    ADD CONSTRAINT intent_request_pkey PRIMARY KEY (account_id, intent_id, intent_request_id);

ALTER TABLE ONLY duebook.ledger_change
    ADD CONSTRAINT ledger_change_pkey PRIMARY KEY (account_id, change_id);

ALTER TABLE ONLY duebook.ledger_payment
    ADD CONSTRAINT ledger_payment_pkey PRIMARY KEY (account_id, payment_id);

ALTER TABLE ONLY duebook.intent
    ADD CONSTRAINT operation_key_is_unique UNIQUE (account_id, operation_key);

ALTER TABLE ONLY duebook.outcome
    ADD CONSTRAINT outcome_pkey PRIMARY KEY (account_id, operation_key);

ALTER TABLE ONLY duebook.proposed
    ADD CONSTRAINT proposed_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.provider_account
    ADD CONSTRAINT provider_account_pkey PRIMARY KEY (provider_account);

ALTER TABLE ONLY duebook.quarantined_row
    ADD CONSTRAINT quarantined_row_pkey PRIMARY KEY (quarantined_row_id);

ALTER TABLE ONLY duebook.quiet_hours
    ADD CONSTRAINT quiet_hours_pkey PRIMARY KEY (quiet_hours_id);

ALTER TABLE ONLY duebook.reconciliation_run
    ADD CONSTRAINT reconciliation_run_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY duebook.settled_position
    ADD CONSTRAINT settled_position_pkey PRIMARY KEY (account_id, payment_id, provider_account, currency);

ALTER TABLE ONLY duebook.settlement_batch
    ADD CONSTRAINT settlement_batch_pkey PRIMARY KEY (provider_account, batch_ref, currency);

ALTER TABLE ONLY duebook.settlement_entry
    ADD CONSTRAINT settlement_entry_pkey PRIMARY KEY (provider_account, entry_id);

ALTER TABLE ONLY duebook.settlement_entry_version
    ADD CONSTRAINT settlement_entry_version_pkey PRIMARY KEY (provider_account, entry_id, version, stored_at);

ALTER TABLE ONLY duebook.settlement_entry_version_default
    ADD CONSTRAINT settlement_entry_version_default_pkey PRIMARY KEY (provider_account, entry_id, version, stored_at);

ALTER TABLE ONLY duebook.settlement_file
    ADD CONSTRAINT settlement_file_is_taken_once UNIQUE (provider_account, sha256);

ALTER TABLE ONLY duebook.settlement_file
    ADD CONSTRAINT settlement_file_pkey PRIMARY KEY (file_id);

ALTER TABLE ONLY duebook.suppression
    ADD CONSTRAINT suppression_pkey PRIMARY KEY (account_id, channel);

CREATE INDEX attempt_result_by_batch ON duebook.attempt_result USING btree (batch_id, flush_no);

CREATE INDEX audit_event_by_account ON duebook.audit_event USING btree (account_id, happened_at);

CREATE INDEX audit_event_by_subject ON duebook.audit_event USING btree (subject, happened_at);

CREATE INDEX batch_by_lease ON duebook.batch USING btree (lease_until);

CREATE INDEX discrepancy_by_payment ON duebook.discrepancy USING btree (account_id, payment_id);

CREATE INDEX discrepancy_open ON duebook.discrepancy USING btree (provider_account, kind) WHERE (closed_at IS NULL);

CREATE INDEX due_by_account ON duebook.due USING btree (account_id, due_at, intent_id);

CREATE INDEX due_by_time ON duebook.due USING btree (due_at, account_id, intent_id);

CREATE INDEX held_by_retest ON duebook.held USING btree (retest_at, account_id, intent_id);

CREATE INDEX intent_by_run ON duebook.intent USING btree (run_id) WHERE (run_id IS NOT NULL);

CREATE INDEX intent_by_subject ON duebook.intent USING btree (account_id, subject, intent_id);

CREATE INDEX ledger_change_by_payment ON duebook.ledger_change USING btree (account_id, payment_id, change_id);

CREATE INDEX ledger_change_by_run ON duebook.ledger_change USING btree (run_id);

CREATE INDEX ledger_payment_by_provider_account ON duebook.ledger_payment USING btree (provider_account, expected_at);

CREATE INDEX ledger_payment_by_reference ON duebook.ledger_payment USING btree (reference);

CREATE UNIQUE INDEX quarantined_row_is_kept_once ON duebook.quarantined_row USING btree (source_kind, COALESCE(provider_account, ''::text), COALESCE(file_sha256, ''::text), line_no, COALESCE(column_name, ''::text));

CREATE INDEX reconciliation_run_by_account ON duebook.reconciliation_run USING btree (provider_account, run_id DESC);

CREATE INDEX settled_position_by_provider_account ON duebook.settled_position USING btree (provider_account, account_id, payment_id);

CREATE INDEX settlement_entry_by_batch ON duebook.settlement_entry USING btree (provider_account, batch_ref);

CREATE INDEX settlement_entry_by_payment ON duebook.settlement_entry USING btree (account_id, payment_id) WHERE (account_id IS NOT NULL);

CREATE INDEX settlement_entry_in_suspense ON duebook.settlement_entry USING btree (payment_ref, provider_account) WHERE ((account_id IS NULL) AND (payment_ref IS NOT NULL));

CREATE INDEX settlement_entry_pending ON duebook.settlement_entry USING btree (provider_account, entry_id) WHERE (entry_status = 'pending'::text);

ALTER INDEX duebook.settlement_entry_version_pkey ATTACH PARTITION duebook.settlement_entry_version_default_pkey;

GRANT USAGE ON SCHEMA duebook TO duebook_app;
GRANT USAGE ON SCHEMA duebook TO duebook_receiver;

GRANT USAGE ON SCHEMA duebook_reports TO duebook_app;
GRANT USAGE ON SCHEMA duebook_reports TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.environment_refusal(p_name text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.environment_refusal(p_name text) TO duebook_app;

GRANT SELECT ON TABLE duebook.alembic_version TO duebook_app;

GRANT SELECT ON TABLE duebook.applied_object TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.attempt TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.attempt_result TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.audit_event TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.audit_event_audit_event_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.batch TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.batch_batch_id_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.batch_ended TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.budget TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.channel TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.consent TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.contact TO duebook_app;

GRANT SELECT ON TABLE duebook.currency_exponent TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.discrepancy TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.due TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.environment TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.held TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.in_doubt TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.intent TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.intent_change TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.intent_change_intent_change_id_seq TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.intent_intent_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.intent_kind TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.intent_request TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.intent_request_intent_request_id_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.ledger_change TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.ledger_change_change_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.ledger_payment TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.outcome TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.proposed TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.provider_account TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.quarantined_row TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.quarantined_row_quarantined_row_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.quiet_hours TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.quiet_hours_quiet_hours_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.reconciliation_run TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.reconciliation_run_run_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settled_position TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_batch TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_entry TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.settlement_entry_version TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_entry_version_default TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_file TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.settlement_file_file_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.suppression TO duebook_app;
