-- name: find_positions_that_differ
-- The settled side is a projection: these positions are not the sum of their current entries.
with summed as (
    select
        e.account_id,
        e.payment_id,
        e.provider_account,
        e.currency,
        sum(e.gross_minor) filter (
            where e.entry_type = 'charge' and e.entry_status = 'settled'
        ) as captured_minor
    from duebook.settlement_entry as e
    where e.account_id is not null
    group by e.account_id, e.payment_id, e.provider_account, e.currency
)

select
    coalesce(s.account_id, p.account_id) as account_id,
    coalesce(s.payment_id, p.payment_id) as operation_key
from summed as s
full join duebook.settled_position as p
    using (account_id, payment_id, provider_account, currency)
where coalesce(s.captured_minor, 0) <> coalesce(p.captured_minor, 0)
order by account_id, operation_key
limit :row_limit;
