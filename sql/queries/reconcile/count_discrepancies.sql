-- name: count_discrepancies
-- Discrepancies of the account that still want somebody after the run, by kind.
select
    d.kind,
    count(*) as open_count
from duebook.discrepancy as d
where
    d.provider_account = :provider_account
    and d.closed_at is null
    and d.status in ('open', 'acknowledged')
group by d.kind
order by d.kind;
