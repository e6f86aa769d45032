-- One entry for several booked payments: they name what is paid together, and each has its share.

alter table duebook.ledger_payment
add column group_reference text,
add constraint group_reference_is_valid
check (char_length(group_reference) between 1 and 200) not valid;
-- squawk-ignore constraint-missing-not-valid
alter table duebook.ledger_payment validate constraint group_reference_is_valid;
comment on column duebook.ledger_payment.group_reference is
'What is paid together with others in one go, such as an order of several invoices: an entry with this reference is shared among them; null: nothing.';
-- Empty until an import states groups.
-- squawk-ignore require-concurrent-index-creation
create index ledger_payment_by_group on duebook.ledger_payment (group_reference)
where group_reference is not null;

create table duebook.entry_allocation (
    provider_account text not null,
    entry_id text not null,
    account_id text not null,
    payment_id text not null,
    gross_minor bigint not null,
    fee_minor bigint not null,
    net_minor bigint not null,
    run_id bigint not null,
    primary key (provider_account, entry_id, account_id, payment_id)
);
create index entry_allocation_by_payment on duebook.entry_allocation (account_id, payment_id);
comment on table duebook.entry_allocation is
'The shares of an entry that pays several booked payments at once: in proportion to what each expects, and together the whole entry.';
comment on column duebook.entry_allocation.provider_account is 'Provider account of the entry.';
comment on column duebook.entry_allocation.entry_id is 'Entry; its reference is the group''s.';
comment on column duebook.entry_allocation.account_id is 'Customer account.';
comment on column duebook.entry_allocation.payment_id is 'Booked payment of the group.';
comment on column duebook.entry_allocation.gross_minor is 'Its share of the gross, minor units of the entry''s currency.';
comment on column duebook.entry_allocation.fee_minor is 'Its share of the fee, minor units of the entry''s net currency.';
comment on column duebook.entry_allocation.net_minor is 'Its share of the net, minor units of the entry''s net currency.';
comment on column duebook.entry_allocation.run_id is 'Run that shared it.';
