-- name: put_severity_rules
-- Writes [severity] of duebook.toml in place of what stands there, and says what changed. Amounts
-- come in major units of ISO's exponent; the row of currency * has the ages.
with wanted as (
    select
        w.currency,
        (w.high * 10 ^ coalesce(x.exponent, 2))::bigint as high_minor,
        (w.critical * 10 ^ coalesce(x.exponent, 2))::bigint as critical_minor,
        case w.currency when '*' then :high_after::interval end as high_after,
        case w.currency when '*' then :critical_after::interval end as critical_after
    from
        unnest(:currencies::text[], :high::numeric[], :critical::numeric[])
            as w (currency, high, critical)
    left join duebook.currency_exponent as x on x.provider = '*' and w.currency = x.currency
),

state as (
    select
        (select jsonb_agg(to_jsonb(s) order by s.currency) from duebook.severity_rule as s)
            as before,
        (select jsonb_agg(to_jsonb(w) order by w.currency) from wanted as w) as after
),

changed as materialized (
    select
        s.before,
        s.after
    from state as s
    where s.before is distinct from s.after
),

gone as (
    delete from duebook.severity_rule as s
    where
        exists (select from changed)
        and not exists (select from wanted as w where w.currency = s.currency)
),

written as (
    insert into duebook.severity_rule as s (
        currency, high_minor, critical_minor, high_after, critical_after
    )
    select
        w.currency,
        w.high_minor,
        w.critical_minor,
        w.high_after,
        w.critical_after
    from wanted as w
    where exists (select from changed)
    on conflict (currency) do update
        set
            high_minor = excluded.high_minor,
            critical_minor = excluded.critical_minor,
            high_after = excluded.high_after,
            critical_after = excluded.critical_after
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_severity',
    'severity',
    jsonb_build_object('before', c.before, 'after', c.after)
from changed as c
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
