-- What an operator stops and starts: pauses with their mode, and incidents.

create table duebook.pause (
    scope text not null,
    name text not null,
    mode text not null,
    reason text not null,
    paused_by text not null,
    paused_at timestamptz not null default clock_timestamp(),
    primary key (scope, name),
    constraint scope_is_known check (scope in ('all', 'kind', 'channel', 'account')),
    constraint all_has_no_name check ((scope = 'all') = (name = '*')),
    constraint pause_mode_is_known check (mode in ('hold', 'drop'))
);
comment on table duebook.pause is
'What is paused now. hold: intents that come due are held and judged by their catch-up policy on resume. drop: they end expired, dropped. Holds expire all the same.';
comment on column duebook.pause.scope is 'all, or one kind, channel or account.';
comment on column duebook.pause.name is 'Which kind, channel or account; * for all.';
comment on column duebook.pause.mode is 'hold or drop. Where two pauses match, drop wins.';
comment on column duebook.pause.reason is 'Why.';
comment on column duebook.pause.paused_by is 'Who.';
comment on column duebook.pause.paused_at is 'Since when.';

create table duebook.catch_up_pace (
    pace text primary key,
    next_at timestamptz not null
) with (fillfactor = 50);
comment on table duebook.catch_up_pace is
'When the next missed intent of a kind may be sent, so that catching up keeps spread_per_minute however many senders there are. Locked only by windows that hold a missed intent.';
comment on column duebook.catch_up_pace.pace is 'Kind whose rate it is.';
comment on column duebook.catch_up_pace.next_at is 'First instant that no missed intent has been given yet.';

-- What policies decided about the missed is a small part of all that is audited.
-- squawk-ignore require-concurrent-index-creation
create index audit_event_by_catch_up on duebook.audit_event (happened_at)
where action = 'catch_up';

create table duebook.quiet_hours_statement (
    only_row boolean primary key default true,
    are_none boolean not null,
    stated_by text not null,
    stated_at timestamptz not null default clock_timestamp(),
    constraint statement_has_one_row check (only_row)
);
comment on table duebook.quiet_hours_statement is
'That quiet hours were stated, be it as none: no provider account goes live before.';
comment on column duebook.quiet_hours_statement.only_row is 'Always true: holds the table to one row.';
comment on column duebook.quiet_hours_statement.are_none is 'True: quiet_hours = "none" was stated.';
comment on column duebook.quiet_hours_statement.stated_by is 'Who applied it.';
comment on column duebook.quiet_hours_statement.stated_at is 'When.';

create table duebook.incident (
    incident_id bigint generated always as identity primary key,
    name text not null,
    reason text not null,
    pauses_sweep boolean not null,
    oldest_due_band interval not null,
    opened_by text not null,
    opened_at timestamptz not null default clock_timestamp(),
    resumed_by text,
    resumed_at timestamptz,
    policies jsonb not null default '[]',
    samples jsonb not null default '[]',
    closed_by text,
    closed_at timestamptz,
    report jsonb,
    constraint incident_name_is_valid check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'),
    constraint band_is_positive check (oldest_due_band > interval '0'),
    constraint closing_has_a_report check ((closed_at is null) = (report is null)),
    constraint incident_name_is_unique unique (name)
);
create unique index incident_open on duebook.incident ((true)) where closed_at is null;
comment on table duebook.incident is
'From open to close of what an operator handles. While one is open, manual replay is refused.';
comment on column duebook.incident.incident_id is 'Identity.';
comment on column duebook.incident.name is 'Its name, said in every refusal.';
comment on column duebook.incident.reason is 'What happened.';
comment on column duebook.incident.pauses_sweep is 'Whether sweeps claim nothing until it is resumed.';
comment on column duebook.incident.oldest_due_band is 'It can be closed only when nothing has been due for longer than this.';
comment on column duebook.incident.opened_by is 'Who opened it.';
comment on column duebook.incident.opened_at is 'When.';
comment on column duebook.incident.resumed_by is 'Who let the sweeps go on.';
comment on column duebook.incident.resumed_at is 'When.';
comment on column duebook.incident.policies is 'Catch-up policies of what was due, as they stood when it was resumed.';
comment on column duebook.incident.samples is 'How the backlog fell, as a resume saw it: instant, due, oldest, in doubt, sent.';
comment on column duebook.incident.closed_by is 'Who closed it.';
comment on column duebook.incident.closed_at is 'When.';
comment on column duebook.incident.report is 'What it came to: policies that applied, due rows beside their outcomes, what is in doubt.';

create table duebook.incident_intent (
    incident_id bigint not null,
    account_id text not null,
    intent_id bigint not null,
    due_at timestamptz not null,
    primary key (incident_id, account_id, intent_id)
);
comment on table duebook.incident_intent is 'What was due and not ended when an incident was opened or resumed: each has to come to an end or stand somewhere.';
comment on column duebook.incident_intent.incident_id is 'Incident.';
comment on column duebook.incident_intent.account_id is 'Customer account.';
comment on column duebook.incident_intent.intent_id is 'Intent.';
comment on column duebook.incident_intent.due_at is 'Its due time then.';
