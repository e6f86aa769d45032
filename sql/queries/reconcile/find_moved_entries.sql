-- name: find_moved_entries
-- Entries that went from one payment to another, or to none; told: one of the two was told already.
insert into moved_entry
select
    c.old_account_id,
    c.old_payment_id,
    c.account_id,
    c.payment_id,
    e.entry_id,
    e.version,
    e.occurred_at,
    exists (
        select from duebook.intent as i
        where
            i.account_id = c.old_account_id
            and i.subject = concat('payment:', c.old_payment_id)
            and i.kind in ('payment_settled', 'payment_refunded', 'payment_disputed')
    )
    or exists (
        select from duebook.intent as i
        where
            i.account_id = c.account_id
            and i.subject = concat('payment:', c.payment_id)
            and i.kind in ('payment_settled', 'payment_refunded', 'payment_disputed')
    )
from claim as c
inner join duebook.settlement_entry as e
    on e.provider_account = :provider_account and c.entry_id = e.entry_id
where
    c.old_account_id is not null
    and (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id);
