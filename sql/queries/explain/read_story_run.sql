-- name: read_story_run
-- One reconciliation run with what it counted.
select
    r.run_id,
    r.provider_account,
    a.provider,
    a.notify_from,
    r.scope,
    r.mode,
    r.as_of,
    r.started_at,
    r.committed_at,
    r.triggered_by,
    r.entries_new,
    r.entries_changed,
    r.entries_unchanged,
    r.entries_stale,
    r.quarantined,
    r.matched,
    r.pending,
    r.discrepancies,
    r.ledger_changes,
    r.intents
from duebook.reconciliation_run as r
left outer join duebook.provider_account as a using (provider_account)
where r.run_id = :run_id;
