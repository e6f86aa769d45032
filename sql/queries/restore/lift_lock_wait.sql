-- name: lift_lock_wait
-- The tables are held: what is left to wait for are sequences and rows of facts.
select set_config('lock_timeout', '0', true);
