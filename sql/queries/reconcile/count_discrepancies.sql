-- name: count_discrepancies
-- Open discrepancies of the account after the run, by kind.
select
    d.kind,
    count(*) as open_count
from duebook.discrepancy as d
where d.provider_account = :provider_account and d.closed_at is null
group by d.kind
order by d.kind;
