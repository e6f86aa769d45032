-- name: read_event_state
-- Received events that wait for their read, and those given up since the last full run of their
-- account: that run has read whatever they were about.
select
    w.pending,
    w.oldest_queued_at,
    g.given_up
from (
    select
        count(*) as pending,
        min(p.queued_at) as oldest_queued_at
    from duebook.pending_event as p
) as w
cross join (
    select count(*) as given_up
    from duebook.event_effect as e
    left join duebook.provider_account as a on e.provider_account = a.provider_account
    where
        e.effect = 'given_up'
        and (a.last_full_as_of is null or e.happened_at > a.last_full_as_of)
) as g;
