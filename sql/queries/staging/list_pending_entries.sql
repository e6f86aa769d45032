-- name: list_pending_entries
-- Entries that were announced and are not settled yet: each is asked for again by its id.
select e.entry_id
from duebook.settlement_entry as e
where e.provider_account = :provider_account and e.entry_status = 'pending'
order by e.entry_id;
