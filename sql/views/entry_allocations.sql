-- The shares of entries that pay several booked payments at once.
create or replace view duebook_reports.entry_allocations as
select
    s.provider_account,
    s.entry_id,
    s.account_id,
    s.payment_id,
    e.payment_ref as group_reference,
    e.entry_type,
    s.gross_minor,
    s.fee_minor,
    s.net_minor,
    e.currency,
    e.net_currency,
    duebook.major_amount(s.gross_minor, e.currency, a.provider) as gross,
    duebook.major_amount(s.fee_minor, e.net_currency, a.provider) as fee,
    duebook.major_amount(s.net_minor, e.net_currency, a.provider) as net,
    s.run_id
from duebook.entry_allocation as s
inner join duebook.settlement_entry as e
    on s.provider_account = e.provider_account and s.entry_id = e.entry_id
left join duebook.provider_account as a on s.provider_account = a.provider_account;

comment on view duebook_reports.entry_allocations is
'The shares of entries that pay several booked payments at once; together they are the entry.';
comment on column duebook_reports.entry_allocations.provider_account is 'Account it belongs to.';
comment on column duebook_reports.entry_allocations.entry_id is 'Entry that is shared.';
comment on column duebook_reports.entry_allocations.account_id is 'Customer account.';
comment on column duebook_reports.entry_allocations.payment_id is 'Booked payment that has the share.';
comment on column duebook_reports.entry_allocations.group_reference is 'Reference of the group, as the entry carries it.';
comment on column duebook_reports.entry_allocations.entry_type is 'Type of the entry.';
comment on column duebook_reports.entry_allocations.gross_minor is 'Share of the gross, minor units of currency.';
comment on column duebook_reports.entry_allocations.fee_minor is 'Share of the fee, minor units of net_currency.';
comment on column duebook_reports.entry_allocations.net_minor is 'Share of the net, minor units of net_currency.';
comment on column duebook_reports.entry_allocations.currency is 'Gross currency.';
comment on column duebook_reports.entry_allocations.net_currency is 'Currency of fee and net.';
comment on column duebook_reports.entry_allocations.gross is 'Share of the gross in major units, exact.';
comment on column duebook_reports.entry_allocations.fee is 'Share of the fee in major units, exact.';
comment on column duebook_reports.entry_allocations.net is 'Share of the net in major units, exact.';
comment on column duebook_reports.entry_allocations.run_id is 'Run that shared it.';
