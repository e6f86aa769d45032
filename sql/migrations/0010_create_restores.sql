-- What a restore may have taken back, and how each doubt was resolved.

create table duebook.restore_accepted (
    restore_id bigint generated always as identity primary key,
    accepted_at timestamptz not null default clock_timestamp(),
    accepted_by text not null,
    lost_batches integer not null,
    intents_were_lost boolean not null,
    put_in_doubt integer not null
);
comment on table duebook.restore_accepted is
'Each time an operator accepted a database that was behind its witness. Append-only.';
comment on column duebook.restore_accepted.restore_id is 'Identity.';
comment on column duebook.restore_accepted.accepted_at is 'When. What was due by then may have been sent before the restore.';
comment on column duebook.restore_accepted.accepted_by is 'Who.';
comment on column duebook.restore_accepted.lost_batches is 'Batches, or flushes of them, that the witness knows and the database does not.';
comment on column duebook.restore_accepted.intents_were_lost is 'Whether intents were sent that the database does not know: then what is promised again for a time before accepted_at goes in doubt.';
comment on column duebook.restore_accepted.put_in_doubt is 'Intents put in doubt at once.';
