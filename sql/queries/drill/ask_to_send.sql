-- name: ask_to_send
-- The old sender of the drill asks for a key.
select duebook.ask_to_send(:account_id::text, :operation_key::text, :sender::text) as answer;
