-- name: note_missing_zones
-- Schedules whose zone the time zone data does not have any more; they are looked at again when it
-- has. One that somebody is just editing or cancelling is left to that.
with free as materialized (
    select
        s.account_id,
        s.schedule
    from unnest(:account_ids::text[], :schedules::text[]) as w (account_id, schedule)
    inner join duebook.schedule as s on w.account_id = s.account_id and w.schedule = s.schedule
    where s.zone_missing_since is null
    order by s.account_id, s.schedule
    for update of s skip locked
)

update duebook.schedule as s
set zone_missing_since = clock_timestamp()
from free as f
where s.account_id = f.account_id and s.schedule = f.schedule;
