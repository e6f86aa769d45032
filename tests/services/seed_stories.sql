-- One night of every kind: what a payment can have met, one payment or key for each.
insert into duebook.provider_account (provider_account, provider, mode, notify_from, settle_within)
values
('stripe', 'stripe', 'live', clock_timestamp() - interval '10 days', interval '3 days'),
('adyen', 'adyen', 'dry_run', null, interval '3 days'),
('paypal', 'csv', 'shadow', clock_timestamp() - interval '10 days', interval '3 days');

insert into duebook.intent_kind (
    kind, enabled, channel, notify_after, give_up_after, is_superseded, catch_up,
    catch_up_window, max_occurrences, spread_per_minute, max_tries, max_claims
)
select
    k.kind, k.enabled, 'email', k.notify_after, interval '14 days', true, 'all',
    interval '7 days', 10, 600, 8, 5
from (
    values
    ('payment_settled', true, interval '7 days'),
    ('payment_refunded', true, interval '0'),
    ('payment_disputed', false, interval '0'),
    ('payment_missing', true, interval '0'),
    ('payment_cleared', false, interval '0')
) as k (kind, enabled, notify_after);

insert into duebook.contact (account_id, channel, address, zone)
values
('acme', 'email', 'secret.person@example.org', 'Europe/Berlin'),
('globex', 'email', 'other.person@example.org', 'America/Vancouver');

insert into duebook.ledger_payment (
    account_id, payment_id, reference, amount_minor, currency, booked_status, expected_at,
    provider_account, is_void, imported_at
)
select
    p.account_id, p.payment_id, p.reference, p.amount, p.currency, 'succeeded',
    clock_timestamp() + p.expected, p.provider_account, p.is_void,
    clock_timestamp() - interval '5 days'
from (
    values
    ('acme', 'P-1001', 'ch_1001', 1234567891, 'EUR', interval '-4 days', 'stripe', false),
    ('acme', 'P-1002', 'ch_1002', 250000, 'JPY', interval '-4 days', 'stripe', false),
    ('acme', 'P-old', 'ch_old', 9900, 'EUR', interval '-90 days', 'stripe', false),
    ('acme', 'P-disputed', 'ch_disp', 5000, 'EUR', interval '-4 days', 'stripe', false),
    ('acme', 'P-pending', 'ch_pend', 5000, 'EUR', interval '-1 day', 'stripe', false),
    ('acme', 'P-overdue', 'ch_over', 5000, 'EUR', interval '-4 days', 'stripe', false),
    ('acme', 'P-missing', 'ch_miss', 5000, 'EUR', interval '-20 days', 'stripe', false),
    ('acme', 'P-nowhere', 'ch_nowhere', 5000, 'EUR', interval '-4 days', null, false),
    ('acme', 'P-void', 'ch_void', 5000, 'EUR', interval '-4 days', 'stripe', true),
    ('acme', 'P-dup-1', 'ch_dup', 5000, 'EUR', interval '-4 days', 'stripe', false),
    ('acme', 'P-dup-2', 'ch_dup', 5000, 'EUR', interval '-4 days', 'stripe', false),
    ('acme', 'P-announced', 'ch_ann', 5000, 'EUR', interval '-1 day', 'stripe', false),
    ('acme', 'P-fee', 'ch_fee', 5000, 'EUR', interval '-4 days', 'stripe', false),
    ('globex', 'P-1001', 'ref-77', 777, 'EUR', interval '-4 days', 'adyen', false),
    ('globex', '2', 'ref-2', 777, 'EUR', interval '-4 days', 'adyen', false),
    ('initech', 'P-mute', 'ch_mute', 4200, 'KWD', interval '-4 days', 'stripe', false)
) as p (account_id, payment_id, reference, amount, currency, expected, provider_account, is_void);

insert into duebook.reconciliation_run (
    provider_account, scope, mode, as_of, started_at, committed_at, triggered_by, entries_new,
    quarantined, matched, pending, discrepancies, ledger_changes, intents
)
select
    r.provider_account, r.scope, r.mode, clock_timestamp() - r.ago, clock_timestamp() - r.ago,
    clock_timestamp() - r.ago + interval '3 seconds', 'scheduled__2026-11-30', r.entries_new, r.quarantined, 3,
    1, r.discrepancies::jsonb, r.changes, r.intents
from (
    values
    ('stripe', 'full', 'live', interval '2 days', 6, 0, '{"missing_at_provider": 1}', 5, 5),
    ('adyen', 'full', 'dry_run', interval '1 day', 1, 1, '{}', 1, 1),
    ('stripe', 'full', 'live', interval '12 hours', 0, 0, '{"missing_at_provider": 1}', 0, 0)
) as r (
    provider_account, scope, mode, ago, entries_new, quarantined, discrepancies, changes, intents
);
update duebook.provider_account as a
set last_full_as_of = r.as_of - interval '12 hours', last_full_run_id = r.run_id
from duebook.reconciliation_run as r
where r.provider_account = a.provider_account and r.run_id in (3, 2);

insert into duebook.settlement_file (
    provider_account, sha256, name, size_bytes, row_count, quarantined_count, source_order, run_id,
    received_at
)
values
(
    'adyen', repeat('ab', 32), 'settlement_detail_report_batch_7.csv', 4000, 20, 1, 7, 2,
    clock_timestamp() - interval '1 day'
);
insert into duebook.quarantined_row (
    source_kind, provider_account, run_id, file_sha256, file_name, line_no, column_name, value,
    reason, expected, quarantined_at
)
values
(
    'settlement', 'adyen', 2, repeat('ab', 32), 'settlement_detail_report_batch_7.csv', 9,
    'Gross Credit (GC)', '12,3x', 'not an amount', 'digits with at most one decimal point',
    clock_timestamp() - interval '1 day' + interval '2 seconds'
);

insert into duebook.settlement_entry (
    provider_account, entry_id, version, entry_type, provider_type, batch_ref, payment_ref,
    provider_payment_ref, gross_minor, fee_minor, net_minor, currency, net_currency, entry_status,
    occurred_at, source_order, source, file_id, line_no, account_id, payment_id, first_run_id, run_id
)
select
    e.provider_account, e.entry_id, e.version, e.entry_type, e.entry_type, e.batch_ref,
    e.payment_ref, e.psp, e.gross, 30, e.gross - 30, e.currency, e.currency, e.entry_status,
    clock_timestamp() - e.occurred, 1, e.source, e.file_id, e.line_no, e.account_id, e.payment_id,
    e.run_id, e.run_id
from (
    values
    ('stripe', 'txn_1001', 2, 'charge', 'po_1', 'ch_1001', 'ch_1001', 1234567891, 'EUR', 'settled', interval '4 days', 'api', null::bigint, 1, 'acme', 'P-1001', 1),
    ('stripe', 'txn_1002', 1, 'charge', 'po_1', 'ch_1002', 'ch_1002', 250000, 'JPY', 'settled', interval '4 days', 'api', null, 2, 'acme', 'P-1002', 1),
    ('stripe', 'txn_old', 1, 'charge', 'po_0', 'ch_old', 'ch_old', 9900, 'EUR', 'settled', interval '90 days', 'api', null, 3, 'acme', 'P-old', 1),
    ('stripe', 'txn_disp', 1, 'chargeback', 'po_1', 'ch_disp', 'ch_disp', -5000, 'EUR', 'settled', interval '3 days', 'api', null, 4, 'acme', 'P-disputed', 1),
    ('stripe', 'txn_ann', 1, 'charge', null, 'ch_ann', 'ch_ann', 5000, 'EUR', 'pending', interval '1 day', 'api', null, 5, 'acme', 'P-announced', 1),
    ('stripe', 'txn_fee', 1, 'fee', 'po_1', 'ch_fee', 'ch_fee', 0, 'EUR', 'settled', interval '1 day', 'api', null, 6, 'acme', 'P-fee', 1),
    ('stripe', 'txn_mute', 1, 'charge', 'po_1', 'ch_mute', 'ch_mute', 4200, 'KWD', 'settled', interval '1 day', 'api', null, 6, 'initech', 'P-mute', 1),
    ('stripe', 'txn_lonely', 1, 'charge', 'po_1', 'ch_nobody', 'ch_nobody', 5000, 'EUR', 'settled', interval '1 day', 'api', null, 7, null, null, 1),
    ('adyen', 'ady_77', 1, 'charge', '7', 'ref-77', '8835513921644842', 777, 'EUR', 'settled', interval '2 days', 'settlement_detail_report_batch_7.csv', 1, 12, 'globex', 'P-1001', 2)
) as e (
    provider_account, entry_id, version, entry_type, batch_ref, payment_ref, psp, gross, currency,
    entry_status, occurred, source, file_id, line_no, account_id, payment_id, run_id
);
insert into duebook.settlement_entry_version (
    provider_account, entry_id, version, is_current_when_stored, entry_type, provider_type,
    batch_ref, payment_ref, gross_minor, fee_minor, net_minor, currency, net_currency, entry_status,
    occurred_at, source_order, source, file_id, line_no, run_id, stored_at
)
select
    e.provider_account, e.entry_id, v.version, true, e.entry_type, e.provider_type,
    case when v.version = e.version then e.batch_ref end, e.payment_ref, e.gross_minor, e.fee_minor,
    e.net_minor, e.currency, e.net_currency, e.entry_status, e.occurred_at, e.source_order,
    e.source, e.file_id, e.line_no, e.run_id,
    r.started_at + v.version * interval '1 second'
from duebook.settlement_entry as e
inner join duebook.reconciliation_run as r using (run_id)
cross join lateral generate_series(1, e.version) as v (version);

insert into duebook.settled_position (
    account_id, payment_id, provider_account, currency, captured_minor, refunded_minor,
    charged_back_minor, pending_minor, fee_minor, net_minor, entry_count, run_id
)
select
    e.account_id, e.payment_id, e.provider_account, e.currency,
    case when e.entry_type = 'charge' and e.entry_status = 'settled' then e.gross_minor else 0 end,
    0,
    case when e.entry_type = 'chargeback' then -e.gross_minor else 0 end,
    case when e.entry_status = 'pending' then e.gross_minor else 0 end,
    e.fee_minor, e.net_minor, 1, e.run_id
from duebook.settlement_entry as e
where e.account_id is not null;

insert into duebook.ledger_change (
    account_id, payment_id, run_id, provider_account, change_kind, before_status, after_status,
    currency, before_captured_minor, after_captured_minor, before_refunded_minor,
    after_refunded_minor, before_charged_back_minor, after_charged_back_minor, entry_id,
    entry_version, evidence_at, committed_at
)
select
    s.account_id, s.payment_id, s.run_id, s.provider_account, 'balance', 'expected',
    case when s.charged_back_minor > 0 then 'charged_back' else 'settled' end, s.currency, 0,
    s.captured_minor, 0, 0, 0, s.charged_back_minor, e.entry_id, e.version, e.occurred_at,
    r.committed_at
from duebook.settled_position as s
inner join duebook.settlement_entry as e
    on s.account_id = e.account_id and s.payment_id = e.payment_id
inner join duebook.reconciliation_run as r on s.run_id = r.run_id
where s.captured_minor > 0 or s.charged_back_minor > 0
order by e.entry_id;

insert into duebook.ledger_change (
    account_id, payment_id, run_id, provider_account, change_kind, before_status, after_status,
    currency, before_captured_minor, after_captured_minor, before_refunded_minor,
    after_refunded_minor, before_charged_back_minor, after_charged_back_minor, evidence_at,
    transition_no, committed_at
)
select
    'acme', 'P-missing', r.run_id, 'stripe', 'missing', 'expected', 'expected', 'EUR', 0, 0, 0, 0, 0,
    0, clock_timestamp() - interval '9 days', 1, r.committed_at
from duebook.reconciliation_run as r
where r.run_id = 1;

insert into duebook.discrepancy (
    provider_account, kind, subject, account_id, payment_id, ledger_minor, currency, first_seen_at,
    last_seen_at, opened_run_id, last_run_id
)
select
    'stripe', 'missing_at_provider', 'payment:acme:P-missing', 'acme', 'P-missing', 5000, 'EUR',
    r.as_of, r.as_of, 1, 3
from duebook.reconciliation_run as r
where r.run_id = 1;
insert into duebook.discrepancy (
    provider_account, kind, subject, entry_id, provider_minor, currency, first_seen_at,
    last_seen_at, opened_run_id, last_run_id
)
select
    'stripe', 'missing_in_ledger', 'entry:txn_lonely', 'txn_lonely', 5000, 'EUR', r.as_of, r.as_of,
    1, 3
from duebook.reconciliation_run as r
where r.run_id = 1;
insert into duebook.settlement_batch (
    provider_account, batch_ref, currency, sum_minor, payout_minor, difference_minor, entry_count,
    status, run_id
)
values
('adyen', '7', 'EUR', 777, -768, 9, 3, 'not_closed', 2),
('stripe', 'po_1', 'EUR', 777, -777, 0, 3, 'closed', 1);

-- Intents: one of each place. The key names the case.
insert into duebook.intent (
    account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
    provider_account, run_id, change_id, ownership, created_at
)
select
    c.account_id,
    k.kind || ':email:' || c.provider_account || ':' || c.payment_id || ':'
    || coalesce(c.entry_id || ':v' || c.entry_version, '2026-11-01:1'),
    k.kind, 'payment:' || c.payment_id, c.payment_id, 'email',
    c.committed_at + k.notify_after, c.committed_at + k.notify_after + interval '14 days',
    c.provider_account, c.run_id, c.change_id,
    a.mode, c.committed_at
from duebook.ledger_change as c
inner join duebook.provider_account as a using (provider_account)
inner join duebook.intent_kind as k
    on k.kind = case c.change_kind when 'balance' then 'payment_settled' else 'payment_missing' end
where
    c.payment_id not in ('P-old', 'P-disputed')
order by c.change_id;
insert into duebook.proposed (account_id, intent_id)
select i.account_id, i.intent_id from duebook.intent as i where i.ownership <> 'live';
insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
select i.account_id, i.intent_id, i.notify_at, i.kind, i.channel, i.give_up_at
from duebook.intent as i
where i.payment_id in ('P-1002');
insert into duebook.held (account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims)
select i.account_id, i.intent_id, 'no_contact', i.notify_at, i.kind, i.channel, i.give_up_at, 0, 1
from duebook.intent as i
where i.account_id = 'initech';
insert into duebook.in_doubt (
    account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel, give_up_at, tries,
    claims, look_up_from
)
select
    i.account_id, i.intent_id, 1, 90, 'sender_died', i.notify_at, i.kind, i.channel, i.give_up_at,
    0, 1, clock_timestamp() + interval '5 minutes'
from duebook.intent as i
where i.payment_id = 'P-missing';
insert into duebook.attempt (
    account_id, intent_id, attempt_no, batch_id, position, due_at, tries, suspicions, claimed_at
)
select
    i.account_id, i.intent_id, n.attempt_no, 90 + n.attempt_no, 0, i.notify_at, 0, 0,
    clock_timestamp() - interval '1 day' + n.attempt_no * interval '1 hour'
from duebook.intent as i
cross join lateral generate_series(1, 2) as n (attempt_no)
where i.account_id = 'acme' and i.payment_id = 'P-1001';
insert into duebook.batch_ended (
    batch_id, token, sender, how, flush_no, size, claimed_at, ended_at
)
values
(
    91, gen_random_uuid(), 'worker-1', 'finished', 1, 1, clock_timestamp() - interval '23 hours',
    clock_timestamp() - interval '23 hours'
),
(
    92, gen_random_uuid(), 'worker-2', 'finished', 1, 1, clock_timestamp() - interval '22 hours',
    clock_timestamp() - interval '22 hours'
);
insert into duebook.attempt_result (
    account_id, intent_id, attempt_no, batch_id, flush_no, result, reason, provider_code,
    provider_message_id, finished_at
)
select
    a.account_id, a.intent_id, a.attempt_no, a.batch_id, 1,
    case a.attempt_no when 1 then 'deferred' else 'sent' end,
    case a.attempt_no when 1 then 'quiet_hours' end,
    case a.attempt_no when 2 then '250' end,
    case a.attempt_no when 2 then '<1001@duebook>' end,
    a.claimed_at + interval '2 seconds'
from duebook.attempt as a;
insert into duebook.intent_change (account_id, intent_id, due_at, reason, changed_at)
select
    a.account_id, a.intent_id, a.claimed_at + interval '50 minutes', 'quiet_hours',
    a.claimed_at + interval '2 seconds'
from duebook.attempt as a
where a.attempt_no = 1;
insert into duebook.audit_event (happened_at, actor, action, account_id, subject, detail)
select
    a.claimed_at + interval '1 second', 'gate', 'defer', a.account_id, i.operation_key,
    '{"reason": "quiet_hours"}'::jsonb
from duebook.attempt as a
inner join duebook.intent as i on a.account_id = i.account_id and a.intent_id = i.intent_id
where a.attempt_no = 1;
insert into duebook.outcome (
    account_id, operation_key, intent_id, kind, payment_id, result, due_at, ended_at, attempt_no,
    provider_message_id
)
select
    i.account_id, i.operation_key, i.intent_id, i.kind, i.payment_id, 'sent',
    i.notify_at, clock_timestamp() - interval '22 hours' + interval '5 seconds', 2, '<1001@duebook>'
from duebook.intent as i
where i.account_id = 'acme' and i.payment_id = 'P-1001';
