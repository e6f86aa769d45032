-- name: list_channel_states
-- Channels that rest or that an operator switched off.
select
    coalesce(c.channel, g.channel) as channel,
    coalesce(c.enabled, true) as is_enabled,
    c.reason,
    g.paused_until,
    g.pause_reason
from duebook.channel as c
full outer join duebook.budget as g on c.channel = g.channel
where
    not coalesce(c.enabled, true)
    or g.paused_until > clock_timestamp()
order by 1;
