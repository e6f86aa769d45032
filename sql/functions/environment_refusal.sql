-- Why a sender started for environment p_name must not send from this database; null: it may.
create or replace function duebook.environment_refusal(p_name text) returns text
language sql
stable
set search_path = ''
as $$
    select
        case
            when e.name is null then 'this database was never accepted as an environment'
            when e.name <> p_name
                then pg_catalog.format(
                    'this database was accepted as environment %s, the sender runs as %s', e.name, p_name
                )
            when
                e.system_identifier <> c.system_identifier
                or e.database_oid <> d.oid
                then pg_catalog.format(
                    'this database is a copy of environment %s and was not accepted here', e.name
                )
        end
    from pg_catalog.pg_control_system() as c
    inner join pg_catalog.pg_database as d on d.datname = pg_catalog.current_database()
    left join duebook.environment as e on e.only_row;
$$;
comment on function duebook.environment_refusal(text) is
'Why a sender of the named environment must not send from this database; null when it may.';
