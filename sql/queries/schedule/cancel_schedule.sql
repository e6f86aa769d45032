-- name: cancel_schedule
-- Cancels a schedule, see the function.
select
    c.cancelled,
    c.ended,
    c.requested
from duebook.cancel_schedule(:account_id, :schedule, :reason, :cancelled_by) as c;
