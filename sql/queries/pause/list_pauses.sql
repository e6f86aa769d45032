-- name: list_pauses
-- What is paused now, the oldest first, and how many intents each pause holds.
with held as materialized (
    select
        h.kind,
        h.channel,
        h.account_id,
        count(*) as intent_count
    from duebook.held as h
    where h.cause = 'paused'
    group by h.kind, h.channel, h.account_id
),

by_name as (
    select
        'all' as scope,
        '*' as name,
        sum(h.intent_count) as intent_count
    from held as h
    union all
    select
        'kind' as scope,
        h.kind as name,
        sum(h.intent_count) as intent_count
    from held as h
    group by h.kind
    union all
    select
        'channel' as scope,
        h.channel as name,
        sum(h.intent_count) as intent_count
    from held as h
    group by h.channel
    union all
    select
        'account' as scope,
        h.account_id as name,
        sum(h.intent_count) as intent_count
    from held as h
    group by h.account_id
)

select
    p.scope,
    p.name,
    p.mode,
    p.reason,
    p.paused_by,
    p.paused_at,
    coalesce(n.intent_count, 0)::bigint as held_count
from duebook.pause as p
left outer join by_name as n on p.scope = n.scope and p.name = n.name
order by p.paused_at, p.scope, p.name;
