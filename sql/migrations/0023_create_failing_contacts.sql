-- Addresses at which every send fails, so that one that never recovers is given up after days.

create table duebook.failing_contact (
    account_id text not null,
    channel text not null,
    failing_since timestamptz not null,
    last_failed_at timestamptz not null,
    failures integer not null,
    primary key (account_id, channel)
);
comment on table duebook.failing_contact is
'Contacts at which every send fails since some time; the first success removes the row. Without it the time only starts anew.';
comment on column duebook.failing_contact.account_id is 'Customer account.';
comment on column duebook.failing_contact.channel is 'Channel of the address.';
comment on column duebook.failing_contact.failing_since is 'First failure of those that followed each other within a day.';
comment on column duebook.failing_contact.last_failed_at is 'Newest of them.';
comment on column duebook.failing_contact.failures is 'How many they are.';

comment on column duebook.intent_change.reason is
'Why: quiet_hours, budget, retry, repeat (it may have been received, and its receiver knows a repeat), tzdb, edited, resolved (what was in doubt was not sent).';
