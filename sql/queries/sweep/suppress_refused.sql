-- name: suppress_refused
-- Accounts whose address the provider refused for good are not tried again on this channel.
insert into duebook.suppression (account_id, channel, reason, source)
select
    g.account_id,
    :channel::text,
    g.reason,
    'provider'
from unnest(:account_ids::text[], :reasons::text[]) as g (account_id, reason)
order by g.account_id
on conflict do nothing;
