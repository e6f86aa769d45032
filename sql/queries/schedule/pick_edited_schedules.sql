-- name: pick_edited_schedules
-- Schedules whose rule was edited and whose unclaimed occurrences are not computed again yet.
select
    s.account_id,
    s.schedule,
    s.edited_at
from duebook.schedule as s
where s.edited_at is not null
order by s.edited_at, s.account_id, s.schedule
limit :most::bigint
for update of s skip locked;
