-- name: update_changed_entries
-- The changed rows become current.
update duebook.settlement_entry as e
set
    version = e.version + 1,
    provider_type = c.provider_type,
    batch_ref = c.batch_ref,
    payment_ref = c.payment_ref,
    gross_minor = c.gross_minor,
    fee_minor = c.fee_minor,
    net_minor = c.net_minor,
    currency = c.currency,
    occurred_at = c.occurred_at,
    entry_status = c.entry_status
from changed_entry as c
where e.provider_account = 'bench' and e.entry_id = c.entry_id;
