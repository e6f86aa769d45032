-- Settlement files that were wrong and are taken back: what they said stays, and counts no more.

alter table duebook.settlement_file
add column withdrawn_at timestamptz,
add column withdrawn_by text,
add column withdrawn_because text,
add column withdrawn_run_id bigint;
comment on column duebook.settlement_file.withdrawn_at is 'When it was withdrawn; null: it counts.';
comment on column duebook.settlement_file.withdrawn_by is 'Who withdrew it.';
comment on column duebook.settlement_file.withdrawn_because is 'Why.';
comment on column duebook.settlement_file.withdrawn_run_id is 'Run that took it back.';
comment on table duebook.settlement_file is
'A settlement file that was applied, known by its checksum and taken once; one that was withdrawn may be taken again.';

-- A row a file: small, and written by runs alone.
-- squawk-ignore require-concurrent-index-creation
create unique index settlement_file_counts_once
on duebook.settlement_file (provider_account, sha256) where withdrawn_at is null;
-- Replaced by the index above.
-- squawk-ignore ban-drop-constraint
alter table duebook.settlement_file drop constraint settlement_file_is_taken_once;

-- Replaced by a wider one, in the same transaction.
-- squawk-ignore ban-drop-constraint
alter table duebook.settlement_entry drop constraint entry_status_is_known;
alter table duebook.settlement_entry
add constraint entry_status_is_known
check (entry_status in ('pending', 'settled', 'withdrawn')) not valid;
-- squawk-ignore constraint-missing-not-valid
alter table duebook.settlement_entry validate constraint entry_status_is_known;
comment on column duebook.settlement_entry.entry_status is
'pending: announced, not yet available; settled: counts; withdrawn: only a file that was withdrawn said it.';
