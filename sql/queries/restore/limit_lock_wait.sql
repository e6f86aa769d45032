-- name: limit_lock_wait
-- Shorter than the server waits before it looks for a deadlock: whoever works goes first.
select set_config('lock_timeout', '200ms', true);
