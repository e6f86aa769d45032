-- name: pause_budget
-- The whole channel said "later": nobody claims or sends before. One pause counts once, however
-- many senders meet it.
insert into duebook.budget as b (channel, paused_until, pause_reason, consecutive_pauses)
values (
    :channel::text,
    clock_timestamp() + :pause::interval,
    :reason::text,
    1
)
on conflict (channel) do update
    set
        paused_until = greatest(b.paused_until, excluded.paused_until),
        pause_reason = excluded.pause_reason,
        consecutive_pauses
        = b.consecutive_pauses
        + (b.paused_until is null or b.paused_until <= clock_timestamp())::integer;
