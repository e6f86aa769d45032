-- What has to be there before the first migration. Run at every migrate, so each statement is one
-- that may be repeated.
create schema if not exists duebook;

comment on schema duebook is
'Duebook: evidence, books, promises, moving state and endings. Analysts read duebook_reports.';

create schema if not exists duebook_reports;

comment on schema duebook_reports is
'The stable reports. Columns are added, never renamed; no addresses, no raw bodies.';

create table if not exists duebook.applied_object (
    path text not null,
    sha256 text not null,
    applied_at timestamptz not null default clock_timestamp(),
    constraint applied_object_pk primary key (path)
);

comment on table duebook.applied_object is
'Which SQL files this database was given, so that a changed function or view is applied again.';
comment on column duebook.applied_object.path is 'The file, relative to sql/.';
comment on column duebook.applied_object.sha256 is 'Digest of the file as it was applied.';
comment on column duebook.applied_object.applied_at is 'When it was applied last.';
