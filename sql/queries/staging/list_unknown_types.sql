-- name: list_unknown_types
-- Provider types that nobody has mapped; their rows are kept as `other`.
select
    e.provider_type,
    count(*) as entries
from staged_entry as e
where
    e.entry_type = 'other'
    and not exists (
        select from staged_type as t
        where t.provider_type = lower(e.provider_type)
    )
group by e.provider_type
order by e.provider_type
limit 20;
