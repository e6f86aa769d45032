-- name: postpone_events
-- Reads that failed: each is claimed again after its wait.
update duebook.pending_event as p
set
    not_before = clock_timestamp() + e.wait,
    last_error = :error
from unnest(:event_ids::text[], :waits::interval[]) as e (event_id, wait)
where p.provider_account = :provider_account and p.event_id = e.event_id;
