-- name: find_future_outcomes
-- What has ended did so by now. A second is left for a clock that was set back meanwhile.
select
    o.account_id,
    o.operation_key
from duebook.outcome as o
where o.ended_at > (select clock_timestamp() + interval '1 second')
order by o.account_id, o.operation_key
limit :row_limit;
