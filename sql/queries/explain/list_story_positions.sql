-- name: list_story_positions
-- The settled side of the payments: the sum over every provider account, per currency.
select
    s.account_id,
    s.payment_id,
    s.currency,
    min(a.provider) as provider,
    sum(s.captured_minor)::bigint as captured_minor,
    sum(s.refunded_minor)::bigint as refunded_minor,
    sum(s.charged_back_minor)::bigint as charged_back_minor,
    sum(s.pending_minor)::bigint as pending_minor,
    sum(s.fee_minor)::bigint as fee_minor,
    sum(s.net_minor)::bigint as net_minor
from duebook.settled_position as s
inner join duebook.provider_account as a using (provider_account)
where s.account_id = :account_id and s.payment_id = any(:payment_ids::text[])
group by s.account_id, s.payment_id, s.currency
order by s.payment_id, s.currency;
