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
    a.cursor_position,
    extract(epoch from clock_timestamp() - a.cursor_position)::bigint as cursor_age_s,
    e.expected_by,
    e.expected_by is not null
    and coalesce(
        case
            when a.provider = 'stripe' and f.received_at is null then r.committed_at
            else f.received_at
        end,
        '-infinity'
    ) <= e.previous_expected_by as is_late
from duebook.provider_account as a
left join duebook.reconciliation_run as r on a.last_full_run_id = r.run_id
left join lateral (
    select
        s.name,
        s.received_at
    from duebook.settlement_file as s
    where s.provider_account = a.provider_account and s.withdrawn_at is null
    order by s.file_id desc
    limit 1
) as f on true
left join lateral (
    -- The newest instant at which evidence was to be there, and the one before.
    select
        max(x.at) as expected_by,
        max(x.at) filter (where x.nth = 2) as previous_expected_by
    from (
        select
            t.at,
            row_number() over (order by t.at desc) as nth
        from generate_series(0, 15) as b (days_back)
        cross join
            lateral (
                select (clock_timestamp() at time zone a.zone)::date - b.days_back as on_date
            ) as d
        cross join lateral (select (a.settings -> 'expect' ->> 'by')::time as wall) as w
        cross join lateral (select timezone(a.zone, d.on_date + w.wall) as at) as t
        where
            t.at <= clock_timestamp()
            and coalesce(
                a.settings -> 'expect' -> 'days' ? upper(to_char(d.on_date, 'DY')),
                true
            )
    ) as x
) as e on a.settings ? 'expect';

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
comment on column duebook_reports.freshness.last_file is 'Name of the file taken last that still counts.';
comment on column duebook_reports.freshness.last_file_at is 'When it was taken.';
comment on column duebook_reports.freshness.cursor_position is 'For an API: how far it was read.';
comment on column duebook_reports.freshness.cursor_age_s is 'For an API: seconds since the instant up to which it was read.';
comment on column duebook_reports.freshness.expected_by is 'Newest instant at which evidence was to be there ([provider_accounts.….expect]); null: nothing is expected.';
comment on column duebook_reports.freshness.is_late is 'Whether nothing has come since the expected instant before that one: a file did not arrive, or a night was left out.';
