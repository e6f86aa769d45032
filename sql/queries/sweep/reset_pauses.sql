-- name: reset_pauses
-- The channel accepts again: the next pause starts small.
update duebook.budget as b
set consecutive_pauses = 0, pause_reason = null
where
    b.channel = :channel::text
    and b.consecutive_pauses > 0
    and (b.paused_until is null or b.paused_until <= clock_timestamp());
