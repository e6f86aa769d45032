-- name: read_pauses
-- How many pauses in a row a channel has had; sets the next back-off.
select
    b.consecutive_pauses,
    coalesce(b.paused_until > clock_timestamp(), false) as is_paused
from duebook.budget as b
where b.channel = :channel::text;
