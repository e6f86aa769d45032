-- Every difference between what a provider says and what the books say, open and closed.
create or replace view duebook_reports.discrepancies as
select
    d.provider_account,
    d.account_id,
    d.payment_id,
    d.batch_ref,
    d.entry_id,
    d.kind,
    d.subject,
    d.provider_minor,
    d.ledger_minor,
    d.currency,
    duebook.major_amount(d.provider_minor, d.currency, a.provider) as provider_amount,
    duebook.major_amount(d.ledger_minor, d.currency, a.provider) as ledger_amount,
    d.detail,
    d.status,
    d.severity,
    d.first_seen_at,
    case
        when d.closed_at is null then greatest(d.last_seen_at, a.last_full_as_of)
        else d.last_seen_at
    end as last_seen_at,
    d.closed_at,
    (d.first_seen_at at time zone 'UTC')::date as first_seen_on_utc,
    (d.first_seen_at at time zone a.zone)::date as first_seen_on_provider,
    d.times_opened,
    d.opened_run_id,
    d.last_run_id
from duebook.discrepancy as d
left join duebook.provider_account as a on d.provider_account = a.provider_account;

comment on view duebook_reports.discrepancies is
'Differences between the sides, open and closed; closed_at is null while a difference stands.';
comment on column duebook_reports.discrepancies.provider_account is 'Account whose run found it.';
comment on column duebook_reports.discrepancies.account_id is 'Customer account, where a payment is concerned.';
comment on column duebook_reports.discrepancies.payment_id is 'Payment, where one is concerned.';
comment on column duebook_reports.discrepancies.batch_ref is 'Batch, where one is concerned.';
comment on column duebook_reports.discrepancies.entry_id is 'Entry, where one is concerned.';
comment on column duebook_reports.discrepancies.kind is
'missing_in_ledger, missing_at_provider, amount_mismatch, currency_mismatch, status_mismatch, duplicate_reference, unexplained_remainder.';
comment on column duebook_reports.discrepancies.subject is 'What it is about: payment:…, entry:… or batch:….';
comment on column duebook_reports.discrepancies.provider_minor is 'What the provider says, minor units.';
comment on column duebook_reports.discrepancies.ledger_minor is 'What the books say, minor units.';
comment on column duebook_reports.discrepancies.currency is 'Currency of the amounts.';
comment on column duebook_reports.discrepancies.provider_amount is 'What the provider says, major units, exact.';
comment on column duebook_reports.discrepancies.ledger_amount is 'What the books say, major units, exact.';
comment on column duebook_reports.discrepancies.detail is 'What a reader needs to act: statuses, the other currency, how many payments.';
comment on column duebook_reports.discrepancies.status is 'open, closed, or what a person decided.';
comment on column duebook_reports.discrepancies.severity is 'low, normal, high.';
comment on column duebook_reports.discrepancies.first_seen_at is 'As-of of the run that opened it first.';
comment on column duebook_reports.discrepancies.last_seen_at is 'As-of of the newest run that still saw it.';
comment on column duebook_reports.discrepancies.closed_at is 'When a run no longer saw it; null while it stands.';
comment on column duebook_reports.discrepancies.first_seen_on_utc is 'Day of first_seen_at in UTC.';
comment on column duebook_reports.discrepancies.first_seen_on_provider is 'Day of first_seen_at in the provider''s zone.';
comment on column duebook_reports.discrepancies.times_opened is 'How often it was opened.';
comment on column duebook_reports.discrepancies.opened_run_id is 'Run that opened it, or reopened it.';
comment on column duebook_reports.discrepancies.last_run_id is 'Newest run that wrote it.';
