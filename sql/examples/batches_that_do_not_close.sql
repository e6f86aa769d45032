-- Which payouts do not add up, and by how much? The difference is the sum of the entries plus the
-- payout, which is negative: what is missing shows as a negative difference.
select
    provider_account,
    batch_ref,
    currency,
    sum_minor,
    payout_minor,
    difference_minor
from duebook_reports.settlement_batches
where status = 'not_closed'
order by provider_account, batch_ref, currency;
