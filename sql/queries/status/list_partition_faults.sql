-- name: list_partition_faults
-- Months for which versions have no partition of their own, this one and the next, once any exists.
-- Rows go to the default partition meanwhile: that is no error, and can't be dropped by age.
with wanted as (
    select
        to_char(m.at at time zone 'UTC', 'YYYY-MM') as month_utc,
        to_char(m.at at time zone 'UTC', '"duebook.settlement_entry_version_"YYYY_MM')
            as partition_name
    from generate_series(0, 1) as n (months)
    cross join lateral (
        select
            date_trunc('month', clock_timestamp(), 'UTC')
            + make_interval(months => n.months) as at
    ) as m
)

select w.month_utc
from wanted as w
where
    to_regclass(w.partition_name) is null
    and exists (
        select
        from pg_catalog.pg_inherits as h
        inner join pg_catalog.pg_class as c on h.inhrelid = c.oid
        where
            h.inhparent = 'duebook.settlement_entry_version'::regclass
            and c.relname <> 'settlement_entry_version_default'
    )
order by w.month_utc;
