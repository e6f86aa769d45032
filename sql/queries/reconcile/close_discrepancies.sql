-- name: close_discrepancies
-- Closes what is gone. What was ignored or written off stays decided, should it come back.
update duebook.discrepancy as d
set
    status = case when d.status in ('ignored', 'written_off') then d.status else 'closed' end,
    closed_at = clock_timestamp(),
    last_seen_at = greatest(d.last_seen_at, :last_full_as_of::timestamptz),
    last_run_id = :run_id
from gone_discrepancy as g
where
    d.provider_account = :provider_account
    and d.kind = g.kind
    and d.subject = g.subject;
