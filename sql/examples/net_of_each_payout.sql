-- What makes up each payout? Only current versions count, and currencies are never added together.
select
    batch_ref,
    entry_type,
    net_currency,
    count(*) as entries,
    sum(net_minor) as net_minor,
    sum(fee_minor) as fee_minor
from duebook_reports.settlement_entries
where is_current
group by batch_ref, entry_type, net_currency
order by batch_ref, entry_type, net_currency;
