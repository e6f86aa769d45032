-- name: cancel_hold
-- Cancels a hold, or says why not.
select duebook.cancel_hold(:account_id::text, :hold::text, :reason::text, :by::text) as answer;
