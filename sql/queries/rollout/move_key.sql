-- name: move_key
-- Moves one key by name between the old sender and Duebook, for the command line.
select
    duebook.move_key(
        :account_id::text, :operation_key::text, :ownership::text, :reason::text, :by::text
    ) as answer;
