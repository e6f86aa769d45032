-- What providers tell us unasked. Receiving never acts: a receipt only says what to read again.

create table duebook.webhook_receipt (
    endpoint text not null,
    event_id text not null,
    provider_account text not null,
    scheme text not null,
    received_at timestamptz not null default clock_timestamp(),
    body_sha256 bytea not null,
    primary key (endpoint, event_id),
    constraint event_id_is_valid check (char_length(event_id) between 1 and 255),
    constraint digest_is_sha256 check (octet_length(body_sha256) = 32)
);
comment on table duebook.webhook_receipt is 'One event of one endpoint, however often it was delivered. Kept for ever: the only guard against a replay where no time is signed.';
comment on column duebook.webhook_receipt.endpoint is 'Endpoint, as in duebook.toml and in the path.';
comment on column duebook.webhook_receipt.event_id is 'The provider''s id of the event.';
comment on column duebook.webhook_receipt.provider_account is 'Provider account of the endpoint.';
comment on column duebook.webhook_receipt.scheme is 'How it was signed: stripe, standard.';
comment on column duebook.webhook_receipt.received_at is 'When it was stored first.';
comment on column duebook.webhook_receipt.body_sha256 is 'Digest of the raw body.';

create table duebook.webhook_body (
    endpoint text not null,
    event_id text not null,
    body_sha256 bytea not null,
    received_at timestamptz not null default clock_timestamp(),
    headers jsonb not null,
    body bytea not null,
    primary key (endpoint, event_id, body_sha256)
);
comment on table duebook.webhook_body is 'Raw bodies, apart from their receipts so that they can go by age; a second body under one event id is kept and alerted.';
comment on column duebook.webhook_body.endpoint is 'Endpoint.';
comment on column duebook.webhook_body.event_id is 'Event.';
comment on column duebook.webhook_body.body_sha256 is 'Digest of the raw body.';
comment on column duebook.webhook_body.received_at is 'When it came.';
comment on column duebook.webhook_body.headers is 'Signed headers and content type; no cookie, no authorization.';
comment on column duebook.webhook_body.body is 'The bytes that were signed.';

create table duebook.pending_event (
    provider_account text not null,
    event_id text not null,
    endpoint text not null,
    queued_at timestamptz not null default clock_timestamp(),
    tries smallint not null default 0,
    not_before timestamptz not null default clock_timestamp(),
    last_error text,
    primary key (provider_account, event_id)
);
create index pending_event_by_time
on duebook.pending_event (not_before, provider_account, event_id);
comment on table duebook.pending_event is 'Events whose payments were not read again yet.';
comment on column duebook.pending_event.provider_account is 'Provider account.';
comment on column duebook.pending_event.event_id is 'Event.';
comment on column duebook.pending_event.endpoint is 'Endpoint that received it first.';
comment on column duebook.pending_event.queued_at is 'When it was received.';
comment on column duebook.pending_event.tries is 'Reads that were begun; one that never ended counts too.';
comment on column duebook.pending_event.not_before is 'When it may be claimed: a claim moves it past its lease, a failure by its backoff.';
comment on column duebook.pending_event.last_error is 'Why the last read failed. No body.';

create table duebook.event_effect (
    provider_account text not null,
    event_id text not null,
    effect text not null,
    reason text,
    run_id bigint,
    happened_at timestamptz not null default clock_timestamp(),
    primary key (provider_account, event_id),
    constraint effect_is_known check (effect in ('read', 'ignored', 'given_up'))
);
comment on table duebook.event_effect is 'What an event led to, once for its provider account whatever endpoints it came by. Append-only.';
comment on column duebook.event_effect.provider_account is 'Provider account.';
comment on column duebook.event_effect.event_id is 'Event.';
comment on column duebook.event_effect.effect is 'read: its payments went through the diff; ignored: it is about none; given_up: a person is needed.';
comment on column duebook.event_effect.reason is 'Why it was ignored or given up. No body.';
comment on column duebook.event_effect.run_id is 'Run that read it.';
comment on column duebook.event_effect.happened_at is 'When.';
