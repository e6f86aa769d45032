-- Accepts this database as the named environment; a copy of it elsewhere refuses to send again.
create or replace function duebook.accept_environment(
    p_name text,
    p_is_test boolean,
    p_by text
) returns void
language sql
set search_path = ''
as $$
    with identity as (
        select
            (select system_identifier from pg_catalog.pg_control_system()) as system_identifier,
            (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
            as database_oid
    ),
    accepted as (
        insert into duebook.environment as e (
            name, is_test, system_identifier, database_oid, accepted_by
        )
        select p_name, p_is_test, i.system_identifier, i.database_oid, p_by
        from identity as i
        on conflict (only_row) do update
        set
            name = excluded.name,
            is_test = excluded.is_test,
            system_identifier = excluded.system_identifier,
            database_oid = excluded.database_oid,
            accepted_at = pg_catalog.clock_timestamp(),
            accepted_by = excluded.accepted_by
        where
            (e.name, e.is_test, e.system_identifier, e.database_oid)
            is distinct from
            (excluded.name, excluded.is_test, excluded.system_identifier, excluded.database_oid)
        returning name
    )
    insert into duebook.audit_event (actor, action, subject, detail)
    select p_by, 'accept_environment', name, pg_catalog.jsonb_build_object('is_test', p_is_test)
    from accepted;
$$;
comment on function duebook.accept_environment(text, boolean, text) is
'Accepts this database as the named environment; audited; a no-op when it already is.';
