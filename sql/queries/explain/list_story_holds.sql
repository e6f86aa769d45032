-- name: list_story_holds
-- Holds by their name, or those of some payments of an account, and what they are by the clock.
select h.*
from duebook_reports.holds as h
where h.hold = :hold::text
union all
select h.*
from duebook_reports.holds as h
where h.account_id = :account_id::text and h.payment_id = any(:payment_ids::text[])
order by account_id, created_at, hold
limit :row_limit::bigint;
