-- name: write_past_holds
-- The history of a drill: holds that were created at `created_at`, and have ended since. A hold
-- can't be created with an end in the past, so they are written here; their expiry is promised by
-- the product's own function. In the drill's database only.
with written as (
    insert into duebook.hold as h (account_id, hold, created_at, expires_at)
    select
        w.account_id,
        w.hold,
        :created_at::timestamptz,
        w.expires_at
    from
        unnest(:account_ids::text[], :holds::text[], :expire_ats::timestamptz[])
            as w (account_id, hold, expires_at)
    where
        exists (
            select from duebook.environment as e
            where e.is_test and e.name = 'drill'
        )
    returning h as hold
)

select
    count(
        duebook.promise_hold_expiry(
            w.hold,
            duebook.hold_expiry_key((w.hold).hold, (w.hold).expires_at),
            :by::text
        )
    ) as promised
from written as w;
