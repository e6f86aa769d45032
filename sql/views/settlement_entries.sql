-- Every version of every settlement entry; is_current says which one counts. What counts is there
-- also when its version went by age.
create or replace view duebook_reports.settlement_entries as
select
    v.provider_account,
    v.entry_id,
    v.version,
    v.version = e.version as is_current,
    v.entry_type,
    v.provider_type,
    v.batch_ref,
    v.payment_ref,
    v.provider_payment_ref,
    case when v.version = e.version then e.account_id end as account_id,
    case when v.version = e.version then e.payment_id end as payment_id,
    v.gross_minor,
    v.fee_minor,
    v.net_minor,
    v.currency,
    v.net_currency,
    duebook.major_amount(v.gross_minor, v.currency, a.provider) as gross,
    duebook.major_amount(v.fee_minor, v.net_currency, a.provider) as fee,
    duebook.major_amount(v.net_minor, v.net_currency, a.provider) as net,
    v.entry_status,
    v.occurred_at,
    (v.occurred_at at time zone 'UTC')::date as occurred_on_utc,
    (v.occurred_at at time zone a.zone)::date as occurred_on_provider,
    v.available_at,
    (v.available_at at time zone 'UTC')::date as available_on_utc,
    (v.available_at at time zone a.zone)::date as available_on_provider,
    v.source,
    v.line_no,
    v.run_id,
    v.stored_at
from (
    select
        n.provider_account,
        n.entry_id,
        n.version,
        n.entry_type,
        n.provider_type,
        n.batch_ref,
        n.payment_ref,
        n.provider_payment_ref,
        n.gross_minor,
        n.fee_minor,
        n.net_minor,
        n.currency,
        n.net_currency,
        n.entry_status,
        n.occurred_at,
        n.available_at,
        n.source,
        n.line_no,
        n.run_id,
        n.stored_at
    from duebook.settlement_entry_version as n
    union all
    select
        c.provider_account,
        c.entry_id,
        c.version,
        c.entry_type,
        c.provider_type,
        c.batch_ref,
        c.payment_ref,
        c.provider_payment_ref,
        c.gross_minor,
        c.fee_minor,
        c.net_minor,
        c.currency,
        c.net_currency,
        c.entry_status,
        c.occurred_at,
        c.available_at,
        c.source,
        c.line_no,
        c.run_id,
        r.started_at
    from duebook.settlement_entry as c
    left join duebook.reconciliation_run as r on c.run_id = r.run_id
    where
        not exists (
            select
            from duebook.settlement_entry_version as n
            where
                n.provider_account = c.provider_account
                and n.entry_id = c.entry_id
                and n.version = c.version
        )
) as v
inner join duebook.settlement_entry as e
    on v.provider_account = e.provider_account and v.entry_id = e.entry_id
left join duebook.provider_account as a on v.provider_account = a.provider_account;

comment on view duebook_reports.settlement_entries is
'Money rows of the providers, every version; sum only rows with is_current. Amounts in minor units and exact major units.';
comment on column duebook_reports.settlement_entries.provider_account is 'Account it belongs to.';
comment on column duebook_reports.settlement_entries.entry_id is 'Stable identity at the provider.';
comment on column duebook_reports.settlement_entries.version is 'Number of the version, from 1.';
comment on column duebook_reports.settlement_entries.is_current is 'Whether this version counts.';
comment on column duebook_reports.settlement_entries.entry_type is
'charge, refund, chargeback, chargeback_reversal, fee, payout, transfer, reserve, conversion, adjustment, other.';
comment on column duebook_reports.settlement_entries.provider_type is 'The type as the provider wrote it.';
comment on column duebook_reports.settlement_entries.batch_ref is 'Settlement batch or payout, once known.';
comment on column duebook_reports.settlement_entries.payment_ref is 'Reference that booked payments are matched by.';
comment on column duebook_reports.settlement_entries.provider_payment_ref is 'The provider''s own id of the payment.';
comment on column duebook_reports.settlement_entries.account_id is 'Customer account whose payment claims it; null in suspense and for old versions.';
comment on column duebook_reports.settlement_entries.payment_id is 'Payment that claims it; null in suspense and for old versions.';
comment on column duebook_reports.settlement_entries.gross_minor is 'Gross, signed, minor units of currency.';
comment on column duebook_reports.settlement_entries.fee_minor is 'Fee, positive when a cost, minor units of net_currency.';
comment on column duebook_reports.settlement_entries.net_minor is 'Net, signed, minor units of net_currency.';
comment on column duebook_reports.settlement_entries.currency is 'Gross currency.';
comment on column duebook_reports.settlement_entries.net_currency is 'Currency of fee and net.';
comment on column duebook_reports.settlement_entries.gross is 'Gross in major units of currency, exact.';
comment on column duebook_reports.settlement_entries.fee is 'Fee in major units of net_currency, exact.';
comment on column duebook_reports.settlement_entries.net is 'Net in major units of net_currency, exact.';
comment on column duebook_reports.settlement_entries.entry_status is 'pending: announced; settled: counts.';
comment on column duebook_reports.settlement_entries.occurred_at is 'When it happened at the provider.';
comment on column duebook_reports.settlement_entries.occurred_on_utc is 'Day of that in UTC.';
comment on column duebook_reports.settlement_entries.occurred_on_provider is 'Day of that in the provider''s zone.';
comment on column duebook_reports.settlement_entries.available_at is 'When the money is or was available, or booked.';
comment on column duebook_reports.settlement_entries.available_on_utc is 'Day of that in UTC.';
comment on column duebook_reports.settlement_entries.available_on_provider is 'Day of that in the provider''s zone.';
comment on column duebook_reports.settlement_entries.source is 'File name, or api.';
comment on column duebook_reports.settlement_entries.line_no is 'Line in that file, or position in the pull.';
comment on column duebook_reports.settlement_entries.run_id is 'Run that stored this version.';
comment on column duebook_reports.settlement_entries.stored_at is 'When it was stored.';
