-- name: list_held_causes
-- Held intents by cause, with the nearest end of one.
select
    h.cause,
    count(*) as intent_count,
    min(h.since) as oldest_since,
    min(h.give_up_at) as nearest_give_up_at
from duebook.held as h
group by h.cause
order by intent_count desc, h.cause asc;
