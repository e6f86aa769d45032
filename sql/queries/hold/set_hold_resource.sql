-- name: set_hold_resource
-- States how much of a resource there is.
select duebook.set_hold_resource(:resource::text, :capacity::integer, :by::text) as done;
