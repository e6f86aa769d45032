-- name: share_group_entries
-- An entry that no booked payment claims by its own reference, and whose reference is that of a
-- group, is shared among the group's payments: in proportion to what each expects, so that the
-- shares are whole minor units and together the entry. Only payments in its currency, routed to
-- this provider account or to none, and not cancelled; a group with others in it is shared by
-- nobody.
with group_claim as (
    select
        c.entry_id,
        c.payment_ref,
        e.gross_minor,
        e.fee_minor,
        e.net_minor,
        e.currency
    from claim as c
    inner join duebook.settlement_entry as e
        on e.provider_account = :provider_account and c.entry_id = e.entry_id
    where c.account_id is null and c.candidates = 0
),

member as (
    select
        g.entry_id,
        p.account_id,
        p.payment_id,
        g.gross_minor,
        g.fee_minor,
        g.net_minor,
        sum(p.amount_minor) over (partition by g.entry_id) as total,
        sum(p.amount_minor) over (
            partition by g.entry_id
            order by p.expected_at, p.account_id, p.payment_id
        ) as until_here,
        p.amount_minor,
        bool_and(
            p.currency = g.currency
            and coalesce(p.provider_account, :provider_account) = :provider_account
        ) over (partition by g.entry_id) as is_whole
    from group_claim as g
    inner join duebook.ledger_payment as p
        on g.payment_ref = p.group_reference and not p.is_void
)

insert into allocation_new (
    entry_id, account_id, payment_id, gross_minor, fee_minor, net_minor, is_gone
)
select
    m.entry_id,
    m.account_id,
    m.payment_id,
    round(m.gross_minor * m.until_here / m.total)
    - round(m.gross_minor * (m.until_here - m.amount_minor) / m.total),
    round(m.fee_minor * m.until_here / m.total)
    - round(m.fee_minor * (m.until_here - m.amount_minor) / m.total),
    round(m.net_minor * m.until_here / m.total)
    - round(m.net_minor * (m.until_here - m.amount_minor) / m.total),
    false
from member as m
where m.is_whole and m.total > 0;
