-- name: pause_budget
-- The whole channel said "later": nobody claims or sends before. One pause counts once, however
-- many senders meet it; the batch that probes whether it is over counts again.
insert into duebook.budget as b (channel, paused_until, pause_reason, consecutive_pauses)
values (
    :channel::text,
    clock_timestamp() + :pause::interval,
    :reason::text,
    1
)
on conflict (channel) do update
    set
        paused_until = case
            when b.probe_batch_id = :batch_id::bigint then excluded.paused_until
            else greatest(b.paused_until, excluded.paused_until)
        end,
        pause_reason = excluded.pause_reason,
        probe_batch_id = nullif(b.probe_batch_id, :batch_id::bigint),
        consecutive_pauses
        = b.consecutive_pauses
        + (
            b.probe_batch_id is not distinct from :batch_id::bigint
            or b.paused_until is null
            or b.paused_until <= clock_timestamp()
        )::integer;
