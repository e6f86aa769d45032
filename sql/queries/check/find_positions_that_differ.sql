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
),

shared as (
    select
        s.account_id,
        s.payment_id,
        s.provider_account,
        e.currency,
        sum(s.gross_minor) filter (
            where e.entry_type = 'charge' and e.entry_status = 'settled'
        ) as captured_minor
    from duebook.entry_allocation as s
    inner join duebook.settlement_entry as e
        on s.provider_account = e.provider_account and s.entry_id = e.entry_id
    group by s.account_id, s.payment_id, s.provider_account, e.currency
),

whole as (
    select
        b.account_id,
        b.payment_id,
        b.provider_account,
        b.currency,
        sum(b.captured_minor) as captured_minor
    from (
        select * from summed
        union all
        select * from shared
    ) as b
    group by b.account_id, b.payment_id, b.provider_account, b.currency
)

select
    coalesce(s.account_id, p.account_id) as account_id,
    coalesce(s.payment_id, p.payment_id) as operation_key
from whole as s
full join duebook.settled_position as p
    using (account_id, payment_id, provider_account, currency)
where coalesce(s.captured_minor, 0) <> coalesce(p.captured_minor, 0)
order by account_id, operation_key
limit :row_limit;
