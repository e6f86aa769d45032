-- Makes the monthly partitions of entry versions from this month to p_months ahead. One that can't
-- be made (rows of its time stand in the default partition already, or the table is in use for
-- longer than two seconds) is left for the next time: rows go to the default partition meanwhile,
-- and no run ever fails for want of one. Returns what was done of each that was not there.
create or replace function duebook.make_partitions(p_months integer)
returns table (partition_name text, done text)
language plpgsql
security definer
set search_path = ''
set lock_timeout = '2s'
as $$
declare
    v_month timestamptz;
    v_from timestamptz;
begin
    for v_month in
        select m.at
        from pg_catalog.generate_series(0, p_months) as n (months)
        cross join lateral (
            select
                pg_catalog.date_trunc('month', pg_catalog.clock_timestamp(), 'UTC')
                + pg_catalog.make_interval(months => n.months) as at
        ) as m
    loop
        v_from := pg_catalog.date_trunc('month', v_month, 'UTC');
        partition_name := pg_catalog.to_char(
            v_from at time zone 'UTC', '"settlement_entry_version_"YYYY_MM'
        );
        continue when pg_catalog.to_regclass('duebook.' || partition_name) is not null;
        begin
            execute pg_catalog.format(
                'create table duebook.%I (like duebook.settlement_entry_version including all)',
                partition_name
            );
            execute pg_catalog.format(
                'comment on table duebook.%I is %L', partition_name,
                'Versions that were stored in ' || pg_catalog.to_char(v_from, 'YYYY-MM')
                || ' (UTC).'
            );
            execute pg_catalog.format(
                'alter table duebook.settlement_entry_version attach partition duebook.%I'
                ' for values from (%L) to (%L)',
                partition_name, v_from, v_from + interval '1 month'
            );
            done := 'made';
        exception
            when check_violation then
                done := 'the default partition holds rows of its time';
            when lock_not_available then
                done := 'the table is in use';
        end;
        return next;
    end loop;
end;
$$;
comment on function duebook.make_partitions(integer) is
'Makes the monthly partitions of entry versions from this month to some ahead. Returns what was done of each that was not there.';
