-- The audit trail: every fact about every intent, as one list in time order (order by happened_at,
-- step). Filter by account_id first: each branch has an index on it.
create or replace view duebook_reports.intent_timeline as
select
    i.account_id,
    i.payment_id,
    i.operation_key,
    f.happened_at,
    f.step,
    f.event,
    f.detail,
    f.actor,
    f.attempt_no,
    i.intent_id
from duebook.intent as i
cross join lateral (
    select
        c.committed_at as happened_at,
        1 as step,
        'ledger_change' as event,
        format('%s: %s to %s', c.change_kind, c.before_status, c.after_status) as detail,
        format('run %s', c.run_id) as actor,
        null::integer as attempt_no
    from duebook.ledger_change as c
    where c.account_id = i.account_id and c.change_id = i.change_id
    union all
    select
        i.created_at,
        2,
        'intent',
        format('%s by %s, %s', i.kind, i.channel, i.ownership),
        case
            when i.run_id is not null then format('run %s', i.run_id)
            when i.subject like 'hold:%' then 'hold'
            else 'schedule'
        end,
        null
    union all
    select
        x.changed_at,
        3,
        'intent_change',
        format('due %s: %s', x.due_at at time zone 'UTC', x.reason),
        'duebook',
        null
    from duebook.intent_change as x
    where x.account_id = i.account_id and x.intent_id = i.intent_id
    union all
    select
        r.requested_at,
        3,
        'intent_request',
        format('%s: %s', r.request, r.reason),
        r.requested_by,
        null
    from duebook.intent_request as r
    where r.account_id = i.account_id and r.intent_id = i.intent_id
    union all
    select
        a.claimed_at,
        4,
        'attempt',
        format('claimed in batch %s', a.batch_id),
        'sweep',
        a.attempt_no
    from duebook.attempt as a
    where a.account_id = i.account_id and a.intent_id = i.intent_id
    union all
    select
        s.finished_at,
        5,
        case when s.is_late then 'late_result' else 'attempt_result' end,
        concat_ws(' ', s.result, s.reason, s.provider_code),
        'sweep',
        s.attempt_no
    from duebook.attempt_result as s
    where s.account_id = i.account_id and s.intent_id = i.intent_id
    union all
    select
        e.happened_at,
        6,
        'audit_event',
        e.action,
        e.actor,
        null
    from duebook.audit_event as e
    where e.account_id = i.account_id and e.subject = i.operation_key
    union all
    select
        o.ended_at,
        7,
        'outcome',
        concat_ws(' ', o.result, o.reason),
        'duebook',
        o.attempt_no
    from duebook.outcome as o
    where o.account_id = i.account_id and o.operation_key = i.operation_key
) as f;
comment on view duebook_reports.intent_timeline is
'Every fact about every intent, to be ordered by happened_at and step: the audit trail.';
comment on column duebook_reports.intent_timeline.account_id is 'Customer account.';
comment on column duebook_reports.intent_timeline.payment_id is 'Payment, if the intent is about one.';
comment on column duebook_reports.intent_timeline.operation_key is 'The idempotency key.';
comment on column duebook_reports.intent_timeline.happened_at is 'When.';
comment on column duebook_reports.intent_timeline.step is 'Order of facts of one instant.';
comment on column duebook_reports.intent_timeline.event is
'ledger_change, intent, intent_change, intent_request, attempt, attempt_result, late_result, audit_event or outcome.';
comment on column duebook_reports.intent_timeline.detail is 'What, without amounts or addresses.';
comment on column duebook_reports.intent_timeline.actor is 'Who or what did it.';
comment on column duebook_reports.intent_timeline.attempt_no is 'Attempt concerned, if one.';
comment on column duebook_reports.intent_timeline.intent_id is 'Intent.';
