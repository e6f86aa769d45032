-- name: read_contact_address
-- Where an account is told over a channel.
select c.address
from duebook.contact as c
where c.account_id = :account_id::text and c.channel = :channel::text;
