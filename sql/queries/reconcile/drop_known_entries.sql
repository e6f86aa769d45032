-- name: drop_known_entries
-- Rows of files that another run took meanwhile take no part.
with known as (
    select s.source_no
    from staged_source as s
    where s.sha256 is not null and s.file_id is null
),

rejects as (
    delete from staged_reject as j
    using known as k
    where j.source_no = k.source_no
)

delete from staged_entry as e
using known as k
where e.source_no = k.source_no;
