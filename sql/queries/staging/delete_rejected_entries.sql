-- name: delete_rejected_entries
-- Suspect rows that were rejected, or are blank, take no further part.
delete from staged_entry as e
where
    e.is_suspect
    and (
        exists (
            select from staged_reject as j
            where j.source_no = e.source_no and j.line_no = e.line_no
        )
        or not exists (
            select from suspect_row as q
            where q.source_no = e.source_no and q.line_no = e.line_no
        )
    );
