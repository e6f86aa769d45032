-- What providers pay out together, per net currency, and whether it closes.
create or replace view duebook_reports.settlement_batches as
select
    b.provider_account,
    b.batch_ref,
    b.currency,
    b.sum_minor,
    b.payout_minor,
    b.difference_minor,
    duebook.major_amount(b.sum_minor, b.currency, a.provider) as sum,
    duebook.major_amount(b.payout_minor, b.currency, a.provider) as payout,
    duebook.major_amount(b.difference_minor, b.currency, a.provider) as difference,
    b.entry_count,
    b.status,
    b.is_itemisable,
    b.is_complete,
    b.run_id,
    b.updated_at,
    (b.updated_at at time zone 'UTC')::date as updated_on_utc,
    (b.updated_at at time zone a.zone)::date as updated_on_provider
from duebook.settlement_batch as b
left join duebook.provider_account as a on b.provider_account = a.provider_account;

comment on view duebook_reports.settlement_batches is
'Settlement batches per net currency; a batch closes when its difference is 0.';
comment on column duebook_reports.settlement_batches.provider_account is 'Account it belongs to.';
comment on column duebook_reports.settlement_batches.batch_ref is 'The provider''s name of the batch or payout.';
comment on column duebook_reports.settlement_batches.currency is 'Net currency.';
comment on column duebook_reports.settlement_batches.sum_minor is 'Net of its entries without the payout, minor units.';
comment on column duebook_reports.settlement_batches.payout_minor is 'Net of its payout rows (negative when paid out), minor units.';
comment on column duebook_reports.settlement_batches.difference_minor is 'Their sum, minor units: 0 when the batch closes.';
comment on column duebook_reports.settlement_batches.sum is 'The same as sum_minor in major units, exact.';
comment on column duebook_reports.settlement_batches.payout is 'The same as payout_minor in major units, exact.';
comment on column duebook_reports.settlement_batches.difference is 'The same as difference_minor in major units, exact.';
comment on column duebook_reports.settlement_batches.entry_count is 'Entries in it, the payout included.';
comment on column duebook_reports.settlement_batches.status is
'closed, carried (no payout, 0: the balance moves on), open (not yet paid out), not_closed, not_itemisable.';
comment on column duebook_reports.settlement_batches.is_itemisable is 'False for a payout whose entries the provider does not name.';
comment on column duebook_reports.settlement_batches.is_complete is 'False while the provider may still name further entries.';
comment on column duebook_reports.settlement_batches.run_id is 'Run that last changed it.';
comment on column duebook_reports.settlement_batches.updated_at is 'When it last changed.';
comment on column duebook_reports.settlement_batches.updated_on_utc is 'Day of that in UTC.';
comment on column duebook_reports.settlement_batches.updated_on_provider is 'Day of that in the provider''s zone.';
