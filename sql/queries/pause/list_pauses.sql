-- name: list_pauses
-- What is paused now, and how many intents each pause holds.
select
    p.scope,
    p.name,
    p.mode,
    p.reason,
    p.paused_by,
    p.paused_at,
    (
        select count(*)
        from duebook.held as h
        where
            h.cause = 'paused'
            and case p.scope
                when 'all' then true
                when 'kind' then h.kind = p.name
                when 'channel' then h.channel = p.name
                when 'account' then h.account_id = p.name
            end
    ) as held_count
from duebook.pause as p
order by p.paused_at, p.scope, p.name;
