-- name: put_contact_caps
-- Writes [[contact_caps]] of duebook.toml in place of what stands there, and says what changed.
with wanted as (
    select
        w.channel,
        w.most,
        w.per
    from unnest(:channels::text[], :most::integer[], :per::interval[]) as w (channel, most, per)
),

state as (
    select
        (select jsonb_agg(to_jsonb(c) order by c.channel) from duebook.contact_cap as c) as before,
        (select jsonb_agg(to_jsonb(w) order by w.channel) from wanted as w) as after
),

changed as materialized (
    select
        s.before,
        s.after
    from state as s
    where s.before is distinct from s.after
),

gone as (
    delete from duebook.contact_cap as c
    where
        exists (select from changed)
        and not exists (select from wanted as w where w.channel = c.channel)
),

written as (
    insert into duebook.contact_cap as c (channel, most, per)
    select
        w.channel,
        w.most,
        w.per
    from wanted as w
    where exists (select from changed)
    on conflict (channel) do update
        set most = excluded.most, per = excluded.per
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_contact_caps',
    'contact caps',
    jsonb_build_object('before', c.before, 'after', c.after)
from changed as c
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
