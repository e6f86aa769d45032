-- name: refuse_consent
-- Recipients who told the provider to stop: every kind of notice on this channel.
select duebook.set_consent(w.account_id, '*', :channel::text, false, 'provider') as done
from unnest(:account_ids::text[]) as w (account_id)
order by w.account_id;
