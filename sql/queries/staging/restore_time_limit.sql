-- name: restore_time_limit
-- What comes after a pull is ours again.
reset statement_timeout;
