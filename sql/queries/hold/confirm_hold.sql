-- name: confirm_hold
-- Confirms a hold, or says why not.
select duebook.confirm_hold(:account_id::text, :hold::text, :payment_id::text, :by::text) as answer;
