-- name: delete_rejected_bookings
-- Suspect rows that were rejected, or are blank, take no further part. Set operations, since a row
-- by row look-up in tables without statistics takes hours when every row is suspect.
delete from staged_booking as b
using (
    select s.line_no
    from staged_booking as s
    where s.is_suspect
    except
    (
        select q.line_no
        from suspect_row as q
        except
        select j.line_no
        from staged_reject as j
    )
) as g
where
    b.is_suspect
    and b.line_no = g.line_no;
