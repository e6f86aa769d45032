-- name: find_batches_that_differ
-- A settlement batch is a projection: these are not the sum of their current entries.
with summed as (
    select
        e.provider_account,
        e.batch_ref,
        e.net_currency as currency,
        sum(e.net_minor) as difference_minor
    from duebook.settlement_entry as e
    where e.batch_ref is not null and e.entry_status <> 'withdrawn'
    group by e.provider_account, e.batch_ref, e.net_currency
)

select
    b.provider_account as account_id,
    format('%s %s', b.batch_ref, b.currency) as operation_key
from duebook.settlement_batch as b
inner join summed as s using (provider_account, batch_ref, currency)
where b.is_itemisable and s.difference_minor <> b.difference_minor
order by account_id, operation_key
limit :row_limit;
