-- What catch-up policies decided about missed intents, one row each time that one was judged, with
-- the policy as it was at that moment.
create or replace view duebook_reports.catch_up_decisions as
select
    e.account_id,
    i.payment_id,
    e.subject as operation_key,
    i.kind,
    e.happened_at as decided_at,
    e.detail ->> 'verdict' as verdict,
    (e.detail ->> 'due_at')::timestamptz as due_at,
    (e.detail ->> 'late_s')::bigint as late_s,
    (e.detail ->> 'slot_at')::timestamptz as slot_at,
    (e.detail ->> 'newer_due')::integer as newer_due,
    e.detail ->> 'policy_of' as policy_of,
    e.detail ->> 'catch_up' as catch_up,
    (e.detail ->> 'window_s')::bigint as window_s,
    (e.detail ->> 'max_occurrences')::integer as max_occurrences,
    (e.detail ->> 'spread_per_minute')::integer as spread_per_minute
from duebook.audit_event as e
inner join duebook.intent as i
    on e.account_id = i.account_id and e.subject = i.operation_key
where e.action = 'catch_up';
comment on view duebook_reports.catch_up_decisions is
'What the catch-up policy decided about each missed intent, with the policy as it was then. One row each time that one was judged.';
comment on column duebook_reports.catch_up_decisions.account_id is 'Customer account.';
comment on column duebook_reports.catch_up_decisions.payment_id is 'Payment it is about, if one.';
comment on column duebook_reports.catch_up_decisions.operation_key is 'The idempotency key.';
comment on column duebook_reports.catch_up_decisions.kind is 'Kind, such as payment_settled.';
comment on column duebook_reports.catch_up_decisions.decided_at is 'When.';
comment on column duebook_reports.catch_up_decisions.verdict is
'send, superseded, skipped or too_late.';
comment on column duebook_reports.catch_up_decisions.due_at is 'UTC instant at which it had been due.';
comment on column duebook_reports.catch_up_decisions.late_s is 'How late it was found, in seconds.';
comment on column duebook_reports.catch_up_decisions.slot_at is
'UTC instant from which the pace of catching up lets it go; null unless it is sent.';
comment on column duebook_reports.catch_up_decisions.newer_due is
'Newer ones of its subject that were due, counted as far as its policy asks.';
comment on column duebook_reports.catch_up_decisions.policy_of is 'Whose policy it was: kind or schedule.';
comment on column duebook_reports.catch_up_decisions.catch_up is 'all, latest or skip.';
comment on column duebook_reports.catch_up_decisions.window_s is
'How old a missed one might be and still be sent, in seconds.';
comment on column duebook_reports.catch_up_decisions.max_occurrences is
'With all: how many missed ones of one subject were sent at most.';
comment on column duebook_reports.catch_up_decisions.spread_per_minute is 'Rate while catching up.';
