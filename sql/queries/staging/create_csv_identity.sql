-- name: create_csv_identity
-- Identity of every raw row whose status is not ignored: as in stage_csv.
create temporary view raw_identity as
select
    r.source_no,
    r.line_no,
    concat_ws(':', r.entry_id_1, r.entry_id_2, r.entry_id_3) as entry_id
from raw_row as r
left join staged_status as u on lower(r.status) = u.provider_status
where u.entry_status is distinct from 'ignored';
