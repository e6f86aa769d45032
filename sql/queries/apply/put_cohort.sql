-- name: put_cohort
-- Writes a new version of a cohort where it differs from the newest, with its list of accounts, and
-- says what changed.
with newest as (
    select c.*
    from duebook.cohort as c
    where c.cohort = :cohort
    order by c.cohort_version desc
    limit 1
),

old_members as (
    select coalesce(array_agg(m.account_id order by m.account_id), '{}') as account_ids
    from newest as n
    inner join duebook.cohort_member as m on n.cohort_version = m.cohort_version
),

wanted as (
    select
        :place::integer as place,
        :mode::text as mode,
        :provider_accounts::text[] as provider_accounts,
        case when :is_list::boolean then cardinality(:account_ids::text[]) end as account_count,
        :percent::numeric(5, 2) as percent,
        :attribute::text as attribute,
        :attribute_values::text[] as attribute_values
),

written as (
    insert into duebook.cohort (
        cohort, place, mode, provider_accounts, account_count, percent, attribute,
        attribute_values, stated_by
    )
    select
        :cohort,
        w.place,
        w.mode,
        w.provider_accounts,
        w.account_count,
        w.percent,
        w.attribute,
        w.attribute_values,
        :actor
    from wanted as w
    cross join old_members as o
    left join newest as n on true
    where
        n.cohort is null
        or (
            n.place,
            n.mode,
            n.provider_accounts,
            n.account_count,
            n.percent,
            n.attribute,
            n.attribute_values
        ) is distinct from (
            w.place,
            w.mode,
            w.provider_accounts,
            w.account_count,
            w.percent,
            w.attribute,
            w.attribute_values
        )
        or o.account_ids is distinct from (
            select coalesce(array_agg(m.account_id order by m.account_id), '{}')
            from unnest(:account_ids::text[]) as m (account_id)
        )
    returning *
),

listed as (
    insert into duebook.cohort_member (cohort_version, account_id)
    select
        w.cohort_version,
        m.account_id
    from written as w
    cross join unnest(:account_ids::text[]) as m (account_id)
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_cohort',
    'cohort:' || :cohort::text,
    jsonb_build_object(
        'before', (select to_jsonb(n) - 'stated_at' - 'stated_by' from newest as n),
        'after', to_jsonb(w) - 'stated_at' - 'stated_by'
    )
from written as w
returning
    case
        when coalesce(detail #>> '{before,mode}', '') = '' then 'added' else 'changed'
    end as change;
