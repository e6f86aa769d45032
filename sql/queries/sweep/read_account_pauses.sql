-- name: read_account_pauses
-- Which accounts of a window are paused, and how.
select
    p.name as account_id,
    p.mode
from duebook.pause as p
where p.scope = 'account' and p.name = any(:account_ids::text[]);
