-- name: number_adyen_collisions
-- Account-level rows of one file that agree in all their names are still separate money: the second
-- and later ones get an ordinal, by their contents and so the same in whatever order they stand.
with ranked as (
    select
        e.ctid as row_at,
        row_number() over (
            partition by e.source_no, e.entry_id
            order by e.net_minor, e.occurred_at, e.available_at, e.line_no
        ) as ordinal
    from staged_entry as e
    where e.provider_payment_ref is null
)

update staged_entry as e
set entry_id = concat(e.entry_id, '#', k.ordinal)
from ranked as k
where e.ctid = k.row_at and k.ordinal > 1;
