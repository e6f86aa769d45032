-- Drops the monthly partitions of entry versions that end before an instant. What is current
-- stands in settlement_entry and stays; old versions and bodies go. With p_is_dry_run nothing is
-- dropped. Returns their names and about how many versions each held.
create or replace function duebook.drop_partitions(p_before timestamptz, p_is_dry_run boolean)
returns table (partition_name text, versions bigint)
language plpgsql
security definer
set search_path = ''
set lock_timeout = '2s'
as $$
begin
    for partition_name, versions in
        select c.relname, greatest(c.reltuples, 0)::bigint
        from pg_catalog.pg_inherits as h
        inner join pg_catalog.pg_class as c on h.inhrelid = c.oid
        where
            h.inhparent = 'duebook.settlement_entry_version'::regclass
            and c.relname ~ '^settlement_entry_version_[0-9]{4}_[0-9]{2}$'
            and pg_catalog.to_timestamp(
                pg_catalog.right(c.relname, 7) || ' +00', 'YYYY_MM TZH'
            ) + interval '1 month' <= p_before
        order by c.relname
    loop
        if not p_is_dry_run then
            begin
                execute pg_catalog.format('drop table duebook.%I', partition_name);
            exception
                when lock_not_available then
                    continue;
            end;
        end if;
        return next;
    end loop;
end;
$$;
comment on function duebook.drop_partitions(timestamptz, boolean) is
'Drops the monthly partitions of entry versions that end before an instant. Returns them.';
