-- name: find_gone_allocations
-- Shares that entries looked up in this run had, and do not have any more.
insert into allocation_new (
    entry_id, account_id, payment_id, gross_minor, fee_minor, net_minor, is_gone
)
select
    s.entry_id,
    s.account_id,
    s.payment_id,
    0,
    0,
    0,
    true
from claim as c
inner join duebook.entry_allocation as s
    on s.provider_account = :provider_account and c.entry_id = s.entry_id
where
    not exists (
        select from allocation_new as n
        where
            n.entry_id = s.entry_id
            and n.account_id = s.account_id
            and n.payment_id = s.payment_id
    );
