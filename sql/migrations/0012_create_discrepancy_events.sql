-- Discrepancies that people work on: who, what and why, and entries matched by hand.

alter table duebook.discrepancy
add column assignee text,
add column decided_provider_minor bigint,
add column decided_ledger_minor bigint,
add column decided_currency char(3);
comment on column duebook.discrepancy.status is
'open until gone (closed) or dealt with by a person: acknowledged, resolved, ignored, written_off.';
comment on column duebook.discrepancy.assignee is 'Who works on it; null: nobody yet.';
comment on column duebook.discrepancy.decided_provider_minor is 'What the provider said when it was ignored or written off: with other amounts it is open again.';
comment on column duebook.discrepancy.decided_ledger_minor is 'What the books said then.';
comment on column duebook.discrepancy.decided_currency is 'Currency of the amounts then.';

create table duebook.discrepancy_event (
    event_id bigint generated always as identity primary key,
    provider_account text not null,
    kind text not null,
    subject text not null,
    at timestamptz not null default clock_timestamp(),
    act text not null,
    actor text not null,
    reason text,
    assignee text,
    status_before text,
    status_after text not null,
    provider_minor bigint,
    ledger_minor bigint,
    currency char(3),
    run_id bigint,
    constraint act_is_known check (
        act in (
            'opened', 'changed', 'closed', 'reopened', 'acknowledge', 'assign', 'resolve',
            'ignore', 'write_off', 'reopen'
        )
    )
);
create index discrepancy_event_by_subject
on duebook.discrepancy_event (provider_account, kind, subject, event_id);
comment on table duebook.discrepancy_event is
'What became of each discrepancy: what runs found (opened, changed, closed, reopened) and what people did, with who and why. Append-only.';
comment on column duebook.discrepancy_event.event_id is 'Identity, in the order of writing.';
comment on column duebook.discrepancy_event.provider_account is 'Account of the discrepancy.';
comment on column duebook.discrepancy_event.kind is 'Its kind.';
comment on column duebook.discrepancy_event.subject is 'Its subject.';
comment on column duebook.discrepancy_event.at is 'When.';
comment on column duebook.discrepancy_event.act is 'opened, changed, closed, reopened by a run; acknowledge, assign, resolve, ignore, write_off, reopen by a person.';
comment on column duebook.discrepancy_event.actor is 'Who: a person, or reconcile.';
comment on column duebook.discrepancy_event.reason is 'Why, as the person wrote it.';
comment on column duebook.discrepancy_event.assignee is 'Who works on it from here on.';
comment on column duebook.discrepancy_event.status_before is 'Status before; null when it was opened first.';
comment on column duebook.discrepancy_event.status_after is 'Status after.';
comment on column duebook.discrepancy_event.provider_minor is 'What the provider says then, minor units.';
comment on column duebook.discrepancy_event.ledger_minor is 'What the books say then, minor units.';
comment on column duebook.discrepancy_event.currency is 'Currency of the amounts.';
comment on column duebook.discrepancy_event.run_id is 'Run that found it; null for a person''s act.';

create table duebook.forced_match (
    provider_account text not null,
    entry_id text not null,
    account_id text not null,
    payment_id text not null,
    is_active boolean not null default true,
    forced_by text not null,
    reason text not null,
    forced_at timestamptz not null default clock_timestamp(),
    applied_run_id bigint,
    primary key (provider_account, entry_id)
);
create index forced_match_to_apply on duebook.forced_match (provider_account)
where applied_run_id is null;
comment on table duebook.forced_match is
'An entry that a person matched with a payment, whatever its reference says; the next run of the provider account applies it. Each act is an audit event.';
comment on column duebook.forced_match.provider_account is 'Account of the entry.';
comment on column duebook.forced_match.entry_id is 'Entry.';
comment on column duebook.forced_match.account_id is 'Customer account of the payment.';
comment on column duebook.forced_match.payment_id is 'Payment.';
comment on column duebook.forced_match.is_active is 'False: taken back; the entry is matched by its reference again.';
comment on column duebook.forced_match.forced_by is 'Who did it, or took it back.';
comment on column duebook.forced_match.reason is 'Why.';
comment on column duebook.forced_match.forced_at is 'When.';
comment on column duebook.forced_match.applied_run_id is 'Run that applied it; null: the next one will.';

create table duebook.severity_rule (
    currency text primary key,
    high_minor bigint,
    critical_minor bigint,
    high_after interval,
    critical_after interval,
    constraint currency_is_a_code check (currency = '*' or currency ~ '^[A-Z]{3}$')
);
comment on table duebook.severity_rule is
'From which difference and from which age on a discrepancy is high or critical, by currency; * has the ages. Written by apply.';
comment on column duebook.severity_rule.currency is 'ISO 4217 code, or * for the ages.';
comment on column duebook.severity_rule.high_minor is 'Difference from which it is high, minor units; null: never.';
comment on column duebook.severity_rule.critical_minor is 'Difference from which it is critical, minor units; null: never.';
comment on column duebook.severity_rule.high_after is 'Age from which it is high; null: never.';
comment on column duebook.severity_rule.critical_after is 'Age from which it is critical; null: never.';
