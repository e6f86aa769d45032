-- name: create_position_after
-- Settled side of the affected payments over all provider accounts, after this run.
create temporary table position_after (like position_before);
