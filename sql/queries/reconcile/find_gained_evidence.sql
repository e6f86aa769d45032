-- name: find_gained_evidence
-- The last entry, in source order, that this run applied to each payment; one that counts before
-- one that is only announced.
insert into gained_evidence
select distinct on (c.account_id, c.payment_id)
    c.account_id,
    c.payment_id,
    e.entry_id,
    e.version,
    e.occurred_at,
    bool_or(
        c.old_account_id is null
        or (c.old_account_id = c.account_id and c.old_payment_id = c.payment_id)
    ) over (partition by c.account_id, c.payment_id)
from claim as c
inner join duebook.settlement_entry as e
    on e.provider_account = :provider_account and c.entry_id = e.entry_id
where
    c.account_id is not null
    and (
        c.is_applied
        or (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id)
    )
order by
    c.account_id,
    c.payment_id,
    e.entry_status = 'settled' desc,
    e.source_order desc,
    e.occurred_at desc,
    e.entry_id desc;
