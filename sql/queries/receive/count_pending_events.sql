-- name: count_pending_events
-- How many received events still wait for their read, whenever their turn is.
select count(*) as pending
from duebook.pending_event as p
where :provider_account::text is null or p.provider_account = :provider_account;
