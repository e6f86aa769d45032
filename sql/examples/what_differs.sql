-- What differs between the books and the provider, and by how much?
select
    kind,
    account_id,
    payment_id,
    coalesce(batch_ref, entry_id) as evidence,
    provider_minor,
    ledger_minor,
    currency,
    status
from duebook_reports.discrepancies
order by kind, account_id, payment_id, evidence;
