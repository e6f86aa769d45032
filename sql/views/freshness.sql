-- How old what we know is, by provider account.
create or replace view duebook_reports.freshness as
select
    a.provider_account,
    a.provider,
    a.mode,
    r.run_id as last_run_id,
    a.last_full_as_of as last_as_of,
    r.committed_at as last_run_at,
    extract(epoch from clock_timestamp() - r.committed_at)::bigint as last_run_age_s,
    a.newest_entry_at,
    (a.newest_entry_at at time zone 'UTC')::date as newest_entry_on_utc,
    (a.newest_entry_at at time zone a.zone)::date as newest_entry_on_provider,
    f.name as last_file,
    f.received_at as last_file_at,
    a.cursor_position
from duebook.provider_account as a
left join duebook.reconciliation_run as r on a.last_full_run_id = r.run_id
left join lateral (
    select
        s.name,
        s.received_at
    from duebook.settlement_file as s
    where s.provider_account = a.provider_account
    order by s.file_id desc
    limit 1
) as f on true;

comment on view duebook_reports.freshness is
'How old the evidence of each provider account is: last full run, newest entry, last file, cursor.';
comment on column duebook_reports.freshness.provider_account is 'Account.';
comment on column duebook_reports.freshness.provider is 'Provider.';
comment on column duebook_reports.freshness.mode is 'dry_run, shadow or live.';
comment on column duebook_reports.freshness.last_run_id is 'Newest full run; null before the first.';
comment on column duebook_reports.freshness.last_as_of is 'Its as-of.';
comment on column duebook_reports.freshness.last_run_at is 'When it committed.';
comment on column duebook_reports.freshness.last_run_age_s is 'Seconds since.';
comment on column duebook_reports.freshness.newest_entry_at is 'When the newest entry occurred.';
comment on column duebook_reports.freshness.newest_entry_on_utc is 'Day of that in UTC.';
comment on column duebook_reports.freshness.newest_entry_on_provider is 'Day of that in the provider''s zone.';
comment on column duebook_reports.freshness.last_file is 'Name of the file taken last.';
comment on column duebook_reports.freshness.last_file_at is 'When it was taken.';
comment on column duebook_reports.freshness.cursor_position is 'For an API: how far it was read.';
