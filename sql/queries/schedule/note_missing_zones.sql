-- name: note_missing_zones
-- Schedules whose zone the time zone data does not have any more; they are looked at again when it
-- has.
update duebook.schedule as s
set zone_missing_since = clock_timestamp()
from unnest(:account_ids::text[], :schedules::text[]) as w (account_id, schedule)
where
    s.account_id = w.account_id
    and s.schedule = w.schedule
    and s.zone_missing_since is null;
