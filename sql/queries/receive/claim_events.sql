-- name: claim_events
-- Takes at most :most events whose turn it is, with the body that each was received with. A claim
-- counts a try and moves the event past its lease, so that one whose reader died comes back by
-- itself; whoever else claims at this moment passes over the rows.
with picked as materialized (
    select
        p.provider_account,
        p.event_id
    from duebook.pending_event as p
    where
        p.not_before <= (select clock_timestamp())
        and (:provider_account::text is null or p.provider_account = :provider_account)
    order by p.not_before, p.provider_account, p.event_id
    limit :most
    for update skip locked
),

taken as (
    update duebook.pending_event as p
    set
        tries = least(p.tries + 1, 32767),
        not_before = clock_timestamp() + :lease::interval
    from picked as k
    where p.provider_account = k.provider_account and p.event_id = k.event_id
    returning p.provider_account, p.event_id, p.endpoint, p.tries
)

select
    t.provider_account,
    t.event_id,
    t.endpoint,
    t.tries,
    r.scheme,
    b.body
from taken as t
left join duebook.webhook_receipt as r
    on t.endpoint = r.endpoint and t.event_id = r.event_id
left join duebook.webhook_body as b
    on
        r.endpoint = b.endpoint
        and r.event_id = b.event_id
        and r.body_sha256 = b.body_sha256
order by t.provider_account, t.event_id;
