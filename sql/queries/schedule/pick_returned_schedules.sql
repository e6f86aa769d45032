-- name: pick_returned_schedules
-- Schedules whose zone was unknown and is known now.
select
    s.account_id,
    s.schedule,
    null::timestamptz as edited_at
from duebook.schedule as s
where s.zone_missing_since is not null and s.zone = any(:zones::text[])
order by s.zone, s.account_id, s.schedule
limit :most::bigint
for update of s skip locked;
