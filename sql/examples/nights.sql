-- What did each night find?
select
    provider_account,
    as_of at time zone 'UTC' as as_of_utc,
    entries_new,
    entries_changed,
    matched,
    pending,
    ledger_changes,
    intents
from duebook_reports.reconciliation_runs
order by provider_account, as_of;
