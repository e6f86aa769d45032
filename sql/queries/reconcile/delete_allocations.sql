-- name: delete_allocations
-- The shares of entries looked up in this run go, to be written anew.
delete from duebook.entry_allocation as s
using claim as c
where s.provider_account = :provider_account and s.entry_id = c.entry_id;
