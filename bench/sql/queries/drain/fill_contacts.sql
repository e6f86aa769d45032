-- name: fill_contacts
-- An address for every account, so that the gate has one to find.
insert into duebook.contact (account_id, channel, address, zone)
select
    'account-' || lpad(n::text, 6, '0') as account_id,
    'noop' as channel,
    'nobody-' || n || '@example.com' as address,
    'Europe/Amsterdam' as zone
from generate_series(0, :accounts::integer - 1) as n;
