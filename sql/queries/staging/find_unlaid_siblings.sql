-- name: find_unlaid_siblings
-- Whether an entry that differs stands in another row too that was left out as unchanged: then the
-- newest of them counts, and all rows are needed. Counted, not probed: the planner would take an
-- `exists` for a question that ends early, and it hardly ever does.
select count(*) > 0 as is_found
from raw_identity as i
inner join staged_entry as e on i.entry_id = e.entry_id
left join staged_entry as s on i.source_no = s.source_no and i.line_no = s.line_no
where s.line_no is null;
