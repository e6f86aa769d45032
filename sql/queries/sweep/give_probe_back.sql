-- name: give_probe_back
-- The batch that was to probe sent nothing after all: the next claim may.
update duebook.budget as b
set probe_batch_id = null, paused_until = clock_timestamp()
where b.channel = :channel::text and b.probe_batch_id = :batch_id::bigint;
