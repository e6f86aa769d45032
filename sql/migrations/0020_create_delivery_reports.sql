-- What a provider says later of a message that it accepted: delivered, bounced, complained about.

alter table duebook.suppression
add column source text not null default 'operator';
comment on column duebook.suppression.source is
'Who said so: provider (an answer or a report), recipient (a complaint), operator.';
alter table duebook.suppression
add constraint suppression_source_is_known
check (source in ('provider', 'recipient', 'operator')) not valid;
-- squawk-ignore constraint-missing-not-valid
alter table duebook.suppression validate constraint suppression_source_is_known;

create table duebook.delivery_report (
    delivery_report_id bigint generated always as identity primary key,
    channel text not null,
    provider_message_id text not null,
    status text not null,
    code text,
    suppression text,
    reported_at timestamptz not null,
    received_at timestamptz not null default clock_timestamp(),
    source text not null,
    constraint report_status_is_known
    check (status in ('delivered', 'delayed', 'failed', 'complained'))
);
create unique index delivery_report_once on duebook.delivery_report (
    channel, provider_message_id, status, code
) nulls not distinct;
comment on table duebook.delivery_report is
'What a provider said later of a message that it had accepted. Append-only; the same again is one row.';
comment on column duebook.delivery_report.delivery_report_id is 'Identity.';
comment on column duebook.delivery_report.channel is 'Channel account that sent the message.';
comment on column duebook.delivery_report.provider_message_id is 'The message, as in attempt_result.provider_message_id.';
comment on column duebook.delivery_report.status is 'delivered, delayed (still tried), failed (given up), complained (said to be unwanted).';
comment on column duebook.delivery_report.code is 'The provider''s code, such as an enhanced status of RFC 3463; null: it gave none.';
comment on column duebook.delivery_report.suppression is 'Why nothing more is to be sent to this address; null: it may be.';
comment on column duebook.delivery_report.reported_at is 'When the provider says it was so.';
comment on column duebook.delivery_report.received_at is 'When it was told.';
comment on column duebook.delivery_report.source is 'How it was told: dsn, arf, callback.';

create table duebook.pending_report (
    delivery_report_id bigint primary key,
    give_up_at timestamptz not null
);
comment on table duebook.pending_report is
'Reports that suppress an address and came before the outcome of their message; tried again until then.';
comment on column duebook.pending_report.delivery_report_id is 'Report.';
comment on column duebook.pending_report.give_up_at is 'From then on the message is nobody''s.';

-- Channels that report have few thousand messages a second; those that are measured name none.
-- squawk-ignore require-concurrent-index-creation
create index outcome_by_provider_message on duebook.outcome (provider_message_id)
where provider_message_id is not null;
