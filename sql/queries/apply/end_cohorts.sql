-- name: end_cohorts
-- Ends the cohorts that the file does not state any more: each gets a version without a mode.
with ended as (
    insert into duebook.cohort (cohort, place, stated_by)
    select
        c.cohort,
        c.place,
        :actor
    from duebook.cohort as c
    where
        c.mode is not null
        and c.cohort <> all(:cohorts::text[])
        and not exists (
            select from duebook.cohort as n
            where n.cohort = c.cohort and n.cohort_version > c.cohort_version
        )
    returning cohort, cohort_version
),

noted as (
    insert into duebook.audit_event (actor, action, subject, detail)
    select
        :actor,
        'end_cohort',
        'cohort:' || e.cohort,
        jsonb_build_object('cohort_version', e.cohort_version)
    from ended as e
)

select e.cohort
from ended as e
order by e.cohort;
