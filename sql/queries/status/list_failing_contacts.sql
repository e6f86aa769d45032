-- name: list_failing_contacts
-- By channel: accounts whose address fails at every try, and those that were given up for it.
select
    f.channel,
    count(s.account_id) as given_up,
    count(*) - count(s.account_id) as failing,
    min(f.failing_since) as oldest_since
from duebook.failing_contact as f
left join duebook.suppression as s
    on f.account_id = s.account_id and f.channel = s.channel and s.reason = 'failing'
group by f.channel
order by f.channel;
