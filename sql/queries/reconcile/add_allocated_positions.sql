-- name: add_allocated_positions
-- Shares of entries are added to the settled side of the affected payments, as sum_positions does
-- it with whole entries.
with share as (
    select
        s.account_id,
        s.payment_id,
        r.currency,
        e.entry_type,
        case when r.is_gross and e.entry_status = 'settled' then s.gross_minor end as gross_minor,
        case when r.is_gross and e.entry_status = 'pending' then s.gross_minor end as pending_minor,
        case when r.is_net and e.entry_status = 'settled' then s.fee_minor end as fee_minor,
        case when r.is_net and e.entry_status = 'settled' then s.net_minor end as net_minor
    from affected_payment as f
    inner join duebook.entry_allocation as s
        on f.account_id = s.account_id and f.payment_id = s.payment_id
    inner join duebook.settlement_entry as e
        on s.provider_account = e.provider_account and s.entry_id = e.entry_id
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
    where s.provider_account = :provider_account and e.entry_status <> 'withdrawn'
),

shared as (
    select
        c.account_id,
        c.payment_id,
        c.currency,
        coalesce(sum(c.gross_minor) filter (where c.entry_type = 'charge'), 0) as captured_minor,
        coalesce(-sum(c.gross_minor) filter (where c.entry_type = 'refund'), 0) as refunded_minor,
        coalesce(
            -sum(c.gross_minor) filter (
                where c.entry_type in ('chargeback', 'chargeback_reversal')
            ),
            0
        ) as charged_back_minor,
        coalesce(sum(c.pending_minor), 0) as pending_minor,
        coalesce(sum(c.fee_minor), 0) as fee_minor,
        coalesce(sum(c.net_minor), 0) as net_minor,
        count(*) as entry_count
    from share as c
    group by c.account_id, c.payment_id, c.currency
),

added as (
    update position_new as n
    set
        captured_minor = n.captured_minor + s.captured_minor,
        refunded_minor = n.refunded_minor + s.refunded_minor,
        charged_back_minor = n.charged_back_minor + s.charged_back_minor,
        pending_minor = n.pending_minor + s.pending_minor,
        fee_minor = n.fee_minor + s.fee_minor,
        net_minor = n.net_minor + s.net_minor,
        entry_count = n.entry_count + s.entry_count
    from shared as s
    where
        n.account_id = s.account_id
        and n.payment_id = s.payment_id
        and n.currency = s.currency
    returning n.account_id, n.payment_id, n.currency
)

insert into position_new
select
    s.account_id,
    s.payment_id,
    s.currency,
    s.captured_minor,
    s.refunded_minor,
    s.charged_back_minor,
    s.pending_minor,
    s.fee_minor,
    s.net_minor,
    s.entry_count
from shared as s
where
    not exists (
        select from added as a
        where
            a.account_id = s.account_id
            and a.payment_id = s.payment_id
            and a.currency = s.currency
    );
