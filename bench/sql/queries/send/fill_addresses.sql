-- name: fill_addresses
-- A mail address for every account.
insert into duebook.contact (account_id, channel, address, zone)
select
    'account-' || lpad(n::text, 6, '0') as account_id,
    'email' as channel,
    'customer-' || n || '@example.org' as address,
    'Europe/Amsterdam' as zone
from generate_series(0, :accounts::integer - 1) as n;
