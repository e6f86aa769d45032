-- name: count_outcomes
-- How everything that ended has ended so far.
select
    o.result,
    coalesce(o.reason, '') as reason,
    count(*) as number
from duebook_reports.outcomes as o
group by 1, 2
order by 1 desc, 2;
