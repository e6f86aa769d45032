-- The four facts of each occurrence: intended local time and zone, UTC due time with the time zone
-- data that computed it, operation key, outcome; and where it stands.
create or replace view duebook_reports.occurrences as
select
    c.account_id,
    c.schedule,
    c.nominal_on,
    c.intended_local,
    c.zone,
    c.case_of,
    c.due_at,
    c.tzdb_version,
    i.operation_key,
    i.kind,
    i.channel,
    v.state,
    v.reason,
    o.result,
    o.ended_at,
    round(extract(epoch from o.ended_at - c.due_at))::bigint as late_seconds,
    o.provider_message_id,
    c.rule_version,
    c.written_at,
    c.intent_id
from duebook.occurrence as c
left join duebook.intent as i on c.account_id = i.account_id and c.intent_id = i.intent_id
left join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
left join duebook_reports.intents as v
    on c.account_id = v.account_id and c.intent_id = v.intent_id;
comment on view duebook_reports.occurrences is
'The four facts of each occurrence of a schedule: intended local time and zone, UTC due time, operation key, outcome. One row per nominal date.';
comment on column duebook_reports.occurrences.account_id is 'Customer account.';
comment on column duebook_reports.occurrences.schedule is 'Schedule.';
comment on column duebook_reports.occurrences.nominal_on is 'Date of the rule, before a business-day shift.';
comment on column duebook_reports.occurrences.intended_local is 'Local time that was meant.';
comment on column duebook_reports.occurrences.zone is 'Zone of that local time.';
comment on column duebook_reports.occurrences.case_of is 'exact; gap or overlap of the clock; absent: the month has no such day; unknown_zone: no instant yet.';
comment on column duebook_reports.occurrences.due_at is 'UTC instant of that local time, before any deferral; null while its zone is unknown.';
comment on column duebook_reports.occurrences.tzdb_version is 'Time zone data that computed it.';
comment on column duebook_reports.occurrences.operation_key is 'The idempotency key; unique in the account.';
comment on column duebook_reports.occurrences.kind is 'Kind of notice.';
comment on column duebook_reports.occurrences.channel is 'Channel that carries it.';
comment on column duebook_reports.occurrences.state is 'scheduled, enqueued, unknown, held, sent or expired.';
comment on column duebook_reports.occurrences.reason is 'Why it expired, is held or is unknown.';
comment on column duebook_reports.occurrences.result is 'How it ended: sent or expired; null: not yet.';
comment on column duebook_reports.occurrences.ended_at is 'When it ended.';
comment on column duebook_reports.occurrences.late_seconds is 'How long after its instant it ended, in seconds.';
comment on column duebook_reports.occurrences.provider_message_id is 'The provider''s id of the message, where sent.';
comment on column duebook_reports.occurrences.rule_version is 'Version of the rule that computed it.';
comment on column duebook_reports.occurrences.written_at is 'When it was written.';
comment on column duebook_reports.occurrences.intent_id is 'Intent that promises it.';
