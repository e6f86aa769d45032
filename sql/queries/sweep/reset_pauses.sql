-- name: reset_pauses
-- The channel accepts again: the next pause starts small.
update duebook.budget as b
set
    consecutive_pauses = 0,
    pause_reason = null,
    paused_until = case when b.probe_batch_id is null then b.paused_until end,
    probe_batch_id = null
where
    b.channel = :channel::text
    and b.consecutive_pauses > 0
    and (
        b.probe_batch_id = :batch_id::bigint
        or b.paused_until is null
        or b.paused_until <= clock_timestamp()
    );
