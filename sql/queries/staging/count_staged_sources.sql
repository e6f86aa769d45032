-- name: count_staged_sources
-- Data rows and rejected rows of each file of this run.
with entries as (
    select
        e.source_no,
        count(*) as row_count,
        max(e.source_order) as source_order
    from staged_entry as e
    group by e.source_no
),

rejects as (
    select
        j.source_no,
        count(distinct j.line_no) as row_count
    from staged_reject as j
    group by j.source_no
)

update staged_source as s
set
    row_count = coalesce(e.row_count, 0) + coalesce(j.row_count, 0),
    quarantined_count = coalesce(j.row_count, 0),
    source_order = coalesce(e.source_order, 0)
from staged_source as n
left join entries as e on n.source_no = e.source_no
left join rejects as j on n.source_no = j.source_no
where s.source_no = n.source_no;
