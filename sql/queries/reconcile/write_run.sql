-- name: write_run
-- The run itself, with what it counted.
insert into duebook.reconciliation_run (
    run_id, provider_account, scope, mode, as_of, started_at, triggered_by, entries_new,
    entries_changed, entries_unchanged, entries_stale, quarantined, matched, pending, discrepancies,
    ledger_changes, intents
)
overriding system value
values (
    :run_id, :provider_account, :scope, :mode, :as_of, :started_at, :triggered_by, :entries_new,
    :entries_changed, :entries_unchanged, :entries_stale, :quarantined, :matched, :pending,
    :discrepancies, :ledger_changes, :intents
);
