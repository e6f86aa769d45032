-- name: update_claims
-- Entries that were there before and are claimed by another payment now, or by one at last.
update duebook.settlement_entry as e
set
    account_id = c.account_id,
    payment_id = c.payment_id
from claim as c
where
    not c.is_applied
    and (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id)
    and e.provider_account = :provider_account
    and e.entry_id = c.entry_id;
