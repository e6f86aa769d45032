-- name: gain_allocated_evidence
-- The last entry, in source order, of which this run gave a payment a share, where nothing else is
-- its newest evidence.
insert into gained_evidence
select distinct on (n.account_id, n.payment_id)
    n.account_id,
    n.payment_id,
    e.entry_id,
    e.version,
    e.occurred_at,
    true
from allocation_new as n
inner join duebook.settlement_entry as e
    on e.provider_account = :provider_account and n.entry_id = e.entry_id
where
    not n.is_gone
    and not exists (
        select from gained_evidence as g
        where g.account_id = n.account_id and g.payment_id = n.payment_id
    )
order by
    n.account_id,
    n.payment_id,
    e.entry_status = 'settled' desc,
    e.source_order desc,
    e.occurred_at desc,
    e.entry_id desc;
