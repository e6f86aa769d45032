-- Every committed run with what it counted.
create or replace view duebook_reports.reconciliation_runs as
select
    r.run_id,
    r.provider_account,
    r.scope,
    r.mode,
    r.as_of,
    (r.as_of at time zone 'UTC')::date as as_of_on_utc,
    (r.as_of at time zone a.zone)::date as as_of_on_provider,
    r.started_at,
    r.committed_at,
    extract(epoch from r.committed_at - r.started_at)::numeric(12, 3) as duration_s,
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
left join duebook.provider_account as a on r.provider_account = a.provider_account;

comment on view duebook_reports.reconciliation_runs is
'Committed reconciliation runs, one row each; a dry run leaves none.';
comment on column duebook_reports.reconciliation_runs.run_id is 'Run.';
comment on column duebook_reports.reconciliation_runs.provider_account is 'Account that was compared.';
comment on column duebook_reports.reconciliation_runs.scope is 'full judges absence; payments and window only what is inside.';
comment on column duebook_reports.reconciliation_runs.mode is 'Mode of the account when it ran.';
comment on column duebook_reports.reconciliation_runs.as_of is 'Instant for which pending and missing were judged.';
comment on column duebook_reports.reconciliation_runs.as_of_on_utc is 'Day of that in UTC.';
comment on column duebook_reports.reconciliation_runs.as_of_on_provider is 'Day of that in the provider''s zone.';
comment on column duebook_reports.reconciliation_runs.started_at is 'Database clock before the first byte was read.';
comment on column duebook_reports.reconciliation_runs.committed_at is 'Database clock when it was applied.';
comment on column duebook_reports.reconciliation_runs.duration_s is 'Seconds between the two.';
comment on column duebook_reports.reconciliation_runs.triggered_by is 'Who or what asked for it.';
comment on column duebook_reports.reconciliation_runs.entries_new is 'Entries seen for the first time.';
comment on column duebook_reports.reconciliation_runs.entries_changed is 'Entries with a new current version.';
comment on column duebook_reports.reconciliation_runs.entries_unchanged is 'Entries equal to their current version, rows of known files included.';
comment on column duebook_reports.reconciliation_runs.entries_stale is 'Entries that an older source described.';
comment on column duebook_reports.reconciliation_runs.quarantined is 'Rows that could not be read.';
comment on column duebook_reports.reconciliation_runs.matched is 'Booked payments that match.';
comment on column duebook_reports.reconciliation_runs.pending is 'Booked payments still inside the settlement promise.';
comment on column duebook_reports.reconciliation_runs.discrepancies is 'Open discrepancies of the account after the run, by kind.';
comment on column duebook_reports.reconciliation_runs.ledger_changes is 'Ledger changes written.';
comment on column duebook_reports.reconciliation_runs.intents is 'Intents written.';
