-- What did each day bring, counted as the provider counts its days? In UTC the payouts of half past
-- midnight would be the day before.
select
    provider_account,
    occurred_on_provider as provider_day,
    min(occurred_on_utc) as first_utc_day,
    net_currency,
    count(*) as entries,
    sum(net) filter (where entry_type <> 'payout') as activity,
    sum(fee) as fees,
    sum(net) filter (where entry_type = 'payout') as paid_out
from duebook_reports.settlement_entries
where is_current and entry_status = 'settled'
group by provider_account, occurred_on_provider, net_currency
order by provider_account, occurred_on_provider, net_currency;
