-- name: find_holds_without_intent
-- A hold is created together with the promise that it expires.
select
    h.account_id,
    h.hold as operation_key
from duebook.hold as h
where
    not exists (
        select from duebook.intent as i
        where
            i.account_id = h.account_id
            and i.operation_key = duebook.hold_expiry_key(h.hold, h.expires_at)
    )
order by h.account_id, h.hold
limit :row_limit;
