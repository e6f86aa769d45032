-- name: count_batches
-- Settlement batches by provider account and how they close.
select
    b.provider_account,
    b.status,
    count(*) as number
from duebook_reports.settlement_batches as b
group by 1, 2
order by 1, 2;
