-- name: count_file_rows
-- Data rows and rejected rows of each file of this run.
update staged_source as s
set
    row_count = coalesce(c.row_count, 0) + coalesce(j.row_count, 0),
    quarantined_count = coalesce(j.row_count, 0),
    source_order = coalesce(e.source_order, 0)
from staged_source as n
left join (
    select
        i.source_no,
        count(*) as row_count
    from raw_identity as i
    group by i.source_no
) as c on n.source_no = c.source_no
left join (
    select
        r.source_no,
        count(distinct r.line_no) as row_count
    from staged_reject as r
    group by r.source_no
) as j on n.source_no = j.source_no
left join (
    select
        l.source_no,
        max(l.source_order) as source_order
    from staged_entry as l
    group by l.source_no
) as e on n.source_no = e.source_no
where s.source_no = n.source_no;
