-- name: drop_known_events
-- An event that was queued again while its effect was being written has had it: once is enough.
delete from duebook.pending_event as p
using duebook.event_effect as e
where p.provider_account = e.provider_account and p.event_id = e.event_id;
