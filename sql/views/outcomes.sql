-- How every operation key that has ended did end; one row a key, for ever.
create or replace view duebook_reports.outcomes as
select
    o.account_id,
    o.payment_id,
    o.operation_key,
    o.result,
    o.reason,
    o.intended_local,
    o.zone,
    o.due_at,
    o.ended_at,
    o.provider_message_id,
    o.kind,
    o.attempt_no,
    o.intent_id,
    (o.ended_at at time zone 'UTC')::date as ended_on_utc
from duebook.outcome as o;
comment on view duebook_reports.outcomes is
'How every operation key ended: exactly one permanent row a key.';
comment on column duebook_reports.outcomes.account_id is 'Customer account.';
comment on column duebook_reports.outcomes.payment_id is 'Payment it was about, if one.';
comment on column duebook_reports.outcomes.operation_key is 'The idempotency key.';
comment on column duebook_reports.outcomes.result is 'sent, done (an internal act) or expired.';
comment on column duebook_reports.outcomes.reason is 'Why it expired.';
comment on column duebook_reports.outcomes.intended_local is 'Nominal local time, for promises on a calendar.';
comment on column duebook_reports.outcomes.zone is 'Zone of the nominal local time.';
comment on column duebook_reports.outcomes.due_at is 'UTC due time that counted.';
comment on column duebook_reports.outcomes.ended_at is 'When it ended.';
comment on column duebook_reports.outcomes.provider_message_id is 'The provider''s id of the message, where sent.';
comment on column duebook_reports.outcomes.kind is 'Kind of the intent.';
comment on column duebook_reports.outcomes.attempt_no is 'Attempt that ended it; null when none was needed.';
comment on column duebook_reports.outcomes.intent_id is 'Intent.';
comment on column duebook_reports.outcomes.ended_on_utc is 'UTC day on which it ended.';
