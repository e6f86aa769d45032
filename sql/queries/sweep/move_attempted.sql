-- name: move_attempted
-- The part of a flush that puts intents back: deferred, failed, in doubt, held.
select duebook.move_attempted(:batch_id::bigint, :moves::jsonb);
