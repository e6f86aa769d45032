-- name: sum_positions
-- Settled side of the affected payments at this provider account, from its current entries: gross
-- by gross currency, fee and net by net currency, pending apart.
insert into position_new
select
    c.account_id,
    c.payment_id,
    c.currency,
    coalesce(sum(c.gross_minor) filter (where c.entry_type = 'charge'), 0),
    coalesce(-sum(c.gross_minor) filter (where c.entry_type = 'refund'), 0),
    coalesce(
        -sum(c.gross_minor) filter (where c.entry_type in ('chargeback', 'chargeback_reversal')), 0
    ),
    coalesce(sum(c.pending_minor), 0),
    coalesce(sum(c.fee_minor), 0),
    coalesce(sum(c.net_minor), 0),
    count(*)
from (
    select
        e.account_id,
        e.payment_id,
        r.currency,
        e.entry_type,
        case when r.is_gross and e.entry_status = 'settled' then e.gross_minor end as gross_minor,
        case when r.is_gross and e.entry_status = 'pending' then e.gross_minor end as pending_minor,
        case when r.is_net and e.entry_status = 'settled' then e.fee_minor end as fee_minor,
        case when r.is_net and e.entry_status = 'settled' then e.net_minor end as net_minor
    from affected_payment as f
    inner join duebook.settlement_entry as e
        on f.account_id = e.account_id and f.payment_id = e.payment_id
    cross join
        lateral (
            select
                e.currency,
                true as is_gross,
                e.currency = e.net_currency as is_net
            union all
            select
                e.net_currency,
                false,
                true
            where e.currency <> e.net_currency
        ) as r
    where
        e.provider_account = :provider_account
        and e.account_id is not null
        and e.entry_status <> 'withdrawn'
) as c
group by c.account_id, c.payment_id, c.currency;
