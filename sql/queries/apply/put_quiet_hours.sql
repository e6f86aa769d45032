-- name: put_quiet_hours
-- Writes the quiet hours of duebook.toml in place of those that stand there, keeps that they were
-- stated, and says what changed. No row is the statement that there are none.
with wanted as (
    select
        w.region,
        w.channel,
        w.kind,
        w.from_local,
        w.until_local,
        w.position
    from
        unnest(
            :regions::text[], :channels::text[], :kinds::text[], :starts::time[], :ends::time[]
        ) with ordinality as w (region, channel, kind, from_local, until_local, position)
),

before as (
    select
        coalesce(
            jsonb_agg(
                jsonb_build_array(q.region, q.channel, q.kind, q.from_local, q.until_local)
                order by q.quiet_hours_id
            ),
            '[]'
        ) as windows,
        exists(select from duebook.quiet_hours_statement) as is_stated
    from duebook.quiet_hours as q
),

after as (
    select
        coalesce(
            jsonb_agg(
                jsonb_build_array(w.region, w.channel, w.kind, w.from_local, w.until_local)
                order by w.position
            ),
            '[]'
        ) as windows
    from wanted as w
),

changed as materialized (
    select
        case when b.is_stated then b.windows end as before_windows,
        a.windows as after_windows
    from before as b
    cross join after as a
    where not b.is_stated or b.windows <> a.windows
),

gone as (
    delete from duebook.quiet_hours as q
    where exists (select from changed)
),

written as (
    insert into duebook.quiet_hours (region, channel, kind, from_local, until_local)
    select
        w.region,
        w.channel,
        w.kind,
        w.from_local,
        w.until_local
    from wanted as w
    where exists (select from changed)
    order by w.position
),

stated as (
    insert into duebook.quiet_hours_statement as t (are_none, stated_by)
    select
        c.after_windows = '[]',
        :actor
    from changed as c
    on conflict (only_row) do update
        set
            are_none = excluded.are_none,
            stated_by = excluded.stated_by,
            stated_at = clock_timestamp()
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_quiet_hours',
    'quiet_hours',
    jsonb_build_object('before', c.before_windows, 'after', c.after_windows)
from changed as c
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
