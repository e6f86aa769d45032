-- name: unmatch
-- Takes a match by hand back.
select duebook.unmatch(:provider_account::text, :entry_id::text, :by::text, :reason::text) as done;
