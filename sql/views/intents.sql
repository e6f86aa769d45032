-- Every intent and the one place where it stands; an intent in no place at all is `lost`, which
-- `duebook check` reports.
create or replace view duebook_reports.intents as
select
    i.account_id,
    i.payment_id,
    i.subject,
    i.kind,
    i.channel,
    i.operation_key,
    i.notify_at,
    coalesce(o.due_at, d.due_at, h.due_at, u.due_at, a.due_at, i.notify_at) as due_at,
    case
        when o.operation_key is not null then o.result
        when d.intent_id is not null then 'scheduled'
        when h.intent_id is not null then 'held'
        when u.intent_id is not null then 'unknown'
        when b.batch_id is not null then 'enqueued'
        when p.intent_id is not null then 'proposed'
        else 'lost'
    end as state,
    coalesce(o.reason, h.cause, u.cause) as reason,
    coalesce(d.tries, h.tries, u.tries, a.tries, 0)::integer as tries,
    coalesce(d.claims, h.claims, u.claims, a.attempt_no, 0)::integer as claims,
    i.give_up_at,
    i.provider_account,
    i.run_id,
    i.ownership,
    coalesce(o.ended_at, h.since, u.since, b.claimed_at, p.proposed_at, i.created_at) as since,
    i.created_at,
    i.intent_id,
    e.cohort,
    c.entry_id,
    c.entry_version
from duebook.intent as i
left join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
left join duebook.proposed as p on i.account_id = p.account_id and i.intent_id = p.intent_id
left join duebook.due as d on i.account_id = d.account_id and i.intent_id = d.intent_id
left join duebook.held as h on i.account_id = h.account_id and i.intent_id = h.intent_id
left join duebook.in_doubt as u on i.account_id = u.account_id and i.intent_id = u.intent_id
left join lateral (
    select
        t.batch_id,
        t.attempt_no,
        t.due_at,
        t.tries
    from duebook.attempt as t
    where t.account_id = i.account_id and t.intent_id = i.intent_id
    order by t.attempt_no desc
    limit 1
) as a on true
left join duebook.batch as b on a.batch_id = b.batch_id
left join duebook.cohort as e on i.cohort_version = e.cohort_version
left join duebook.ledger_change as c on i.account_id = c.account_id and i.change_id = c.change_id;
comment on view duebook_reports.intents is
'Every promise to an account and where it stands now. One row per intent.';
comment on column duebook_reports.intents.account_id is 'Customer account.';
comment on column duebook_reports.intents.payment_id is 'Payment it is about, if one.';
comment on column duebook_reports.intents.subject is 'What it is about: payment:<payment>.';
comment on column duebook_reports.intents.kind is 'Kind, such as payment_settled.';
comment on column duebook_reports.intents.channel is 'Channel that carries it.';
comment on column duebook_reports.intents.operation_key is 'The idempotency key; unique in the account.';
comment on column duebook_reports.intents.notify_at is 'UTC instant at which it was promised to become due.';
comment on column duebook_reports.intents.due_at is 'UTC instant that counts now, after deferrals.';
comment on column duebook_reports.intents.state is
'proposed, scheduled, enqueued, unknown, held, sent, done or expired; lost is a violation.';
comment on column duebook_reports.intents.reason is 'Why it expired, is held or is unknown.';
comment on column duebook_reports.intents.tries is 'Tries burnt.';
comment on column duebook_reports.intents.claims is 'Claims so far.';
comment on column duebook_reports.intents.give_up_at is 'From here on it is too late.';
comment on column duebook_reports.intents.provider_account is 'Provider account whose evidence made it.';
comment on column duebook_reports.intents.run_id is 'Reconciliation run that made it.';
comment on column duebook_reports.intents.ownership is 'Mode in force when its change committed.';
comment on column duebook_reports.intents.since is 'Since when it stands where it stands.';
comment on column duebook_reports.intents.created_at is 'When it was written.';
comment on column duebook_reports.intents.cohort is 'Cohort that decided its ownership; null: the provider account''s own mode.';
comment on column duebook_reports.intents.entry_id is 'Settlement entry that is its evidence; null where none is.';
comment on column duebook_reports.intents.entry_version is 'Version of that entry.';
comment on column duebook_reports.intents.intent_id is 'Identity, in the order of writing.';
