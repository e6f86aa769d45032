-- name: has_allocations
-- Whether any entry is shared among several payments.
select exists(select from duebook.entry_allocation) as has_allocations;
