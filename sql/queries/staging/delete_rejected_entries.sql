-- name: delete_rejected_entries
-- Suspect rows that were rejected, or are blank, take no further part. Set operations, since a row
-- by row look-up in tables without statistics takes hours when every row is suspect.
delete from staged_entry as e
using (
    select
        s.source_no,
        s.line_no
    from staged_entry as s
    where s.is_suspect
    except
    (
        select
            q.source_no,
            q.line_no
        from suspect_row as q
        except
        select
            j.source_no,
            j.line_no
        from staged_reject as j
    )
) as g
where
    e.is_suspect
    and e.source_no = g.source_no
    and e.line_no = g.line_no;
