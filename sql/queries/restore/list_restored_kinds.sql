-- name: list_restored_kinds
-- What stands in doubt because of a restore, by kind and channel.
select
    u.kind,
    u.channel,
    count(*) as in_doubt,
    min(u.due_at) as oldest_due_at,
    max(u.due_at) as newest_due_at
from duebook.in_doubt as u
where u.cause = 'restored'
group by u.kind, u.channel
order by u.kind, u.channel;
