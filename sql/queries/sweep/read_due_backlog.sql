-- name: read_due_backlog
-- What is due and not claimed, and the age of its oldest, in seconds.
select
    count(*) as backlog,
    coalesce(
        greatest(0, extract(epoch from clock_timestamp() + :due_offset::interval - min(d.due_at))),
        0
    )::float8 as oldest_due_s
from duebook.due as d
where d.due_at <= (select clock_timestamp() + :due_offset::interval);
