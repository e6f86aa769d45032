-- name: find_budgets_out_of_bounds
-- A budget holds no tokens that it can't have, was not counted in the future, and rests no longer
-- than a day, which is the most that a channel is given.
select
    'budget' as account_id,
    b.channel as operation_key
from duebook.budget as b
where
    (b.tokens is not null and (b.tokens < 0 or b.tokens > b.capacity or b.refill_per_minute < 0))
    or b.refilled_at > clock_timestamp() + interval '1 second'
    or b.paused_until > clock_timestamp() + interval '1 day 1 second'
    or b.consecutive_pauses < 0
order by b.channel
limit :row_limit;
