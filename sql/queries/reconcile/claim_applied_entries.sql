-- name: claim_applied_entries
-- Every entry that is new or changed is looked up.
insert into claim (
    entry_id, payment_ref, provider_payment_ref, occurred_at, is_applied, old_account_id,
    old_payment_id
)
select
    a.entry_id,
    a.payment_ref,
    a.provider_payment_ref,
    a.occurred_at,
    true,
    a.old_account_id,
    a.old_payment_id
from applied_entry as a
where a.change in ('new', 'changed');
