-- name: read_preview_policies
-- Inside a preview's transaction: the policies that decided.
select duebook.incident_policies(0) as policies;
