-- name: lift_time_limit
-- A provider's pages come as fast as it likes: its COPY may take longer than a statement of ours.
set statement_timeout = 0;
