-- name: record_tzdb
-- Records newer time zone data; what waits is computed again from the beginning. The first record
-- has nothing behind it.
with before as (
    select c.tzdb_version
    from duebook.calendar_state as c
),

recorded as (
    insert into duebook.calendar_state as c (tzdb_version, recorded_by, recomputed_at)
    values (:tzdb_version, :recorded_by, clock_timestamp())
    on conflict (only_row) do update
        set
            tzdb_version = excluded.tzdb_version,
            recorded_by = excluded.recorded_by,
            recorded_at = clock_timestamp(),
            account_id = '',
            intent_id = 0,
            recomputed_at = null
        where c.tzdb_version < excluded.tzdb_version collate "C"
    returning c.tzdb_version
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :recorded_by,
    'record_tzdb',
    'tzdb',
    jsonb_build_object('before', (select b.tzdb_version from before as b), 'after', r.tzdb_version)
from recorded as r;
