-- name: find_unlaid_siblings
-- Whether an entry that differs stands in another row too that was left out as unchanged: then the
-- newest of them counts, and all rows are needed.
select
    exists (
        select
        from raw_identity as i
        inner join staged_entry as e on i.entry_id = e.entry_id
        where
            not exists (
                select from staged_entry as s
                where s.source_no = i.source_no and s.line_no = i.line_no
            )
    ) as is_found;
