-- name: list_suspect_entries
-- The fast way laid every row down; only the odd ones are examined.
insert into suspect_row (source_no, line_no)
select
    e.source_no,
    e.line_no
from staged_entry as e
where e.is_suspect;
