-- name: find_holds_overdue
-- A hold that is past its end by an hour has an outcome: a sweep has come by since.
select
    h.account_id,
    duebook.hold_expiry_key(h.hold, h.expires_at) as operation_key
from duebook.hold as h
where
    h.expires_at <= (select clock_timestamp() - interval '1 hour')
    and not exists (
        select from duebook.outcome as o
        where
            o.account_id = h.account_id
            and o.operation_key = duebook.hold_expiry_key(h.hold, h.expires_at)
    )
order by h.account_id, operation_key
limit :row_limit;
