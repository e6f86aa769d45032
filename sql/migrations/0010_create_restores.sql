-- What a restore may have taken back, and what a rescue knew when it ended a batch.

create table duebook.restore_accepted (
    restore_id bigint generated always as identity primary key,
    accepted_at timestamptz not null default clock_timestamp(),
    accepted_by text not null,
    batch_id bigint not null,
    witnessed jsonb not null,
    lost_batches integer not null,
    intents_were_lost boolean not null,
    lost_provider_accounts text[] not null,
    put_in_doubt integer not null
);
comment on table duebook.restore_accepted is
'Each time an operator accepted a database that was behind its witness. Append-only.';
comment on column duebook.restore_accepted.restore_id is 'Identity.';
comment on column duebook.restore_accepted.accepted_at is 'When. What was due by then may have been sent before the restore.';
comment on column duebook.restore_accepted.accepted_by is 'Who.';
comment on column duebook.restore_accepted.batch_id is 'Batch that stands for the lost claims: the attempts of what was put in doubt name it.';
comment on column duebook.restore_accepted.witnessed is 'The objects of the witness that were lost; from then on they count as known.';
comment on column duebook.restore_accepted.lost_batches is 'Batches, or flushes of them, that the witness knows and the database does not.';
comment on column duebook.restore_accepted.intents_were_lost is 'Whether intents were sent that the database does not know: then what is promised again for a time before accepted_at goes in doubt.';
comment on column duebook.restore_accepted.lost_provider_accounts is 'Provider accounts with runs that were lost: until their next full run, evidence from before accepted_at may have been told.';
comment on column duebook.restore_accepted.put_in_doubt is 'Intents put in doubt at once.';

alter table duebook.batch_ended
add column safe_retry_until timestamptz,
add column untried_from integer;
comment on column duebook.batch_ended.safe_retry_until is 'As in batch.';
comment on column duebook.batch_ended.untried_from is 'For a rescued batch: attempts from this position on were never tried, with a result or without.';
comment on column duebook.in_doubt.cause is 'Why: sender_died, retry_unsafe, rescue_failed, restored (a restore may have taken back that it was sent), or the code of the channel.';
