-- name: list_preview_budgets
-- What the rate of each channel allows after the rehearsal took its tokens.
select
    b.channel,
    duebook.count_tokens(b, clock_timestamp()) as tokens,
    b.refill_per_minute,
    b.capacity,
    greatest(extract(epoch from b.paused_until - :as_of::timestamptz), 0)::float8 as paused_s
from duebook.budget as b;
