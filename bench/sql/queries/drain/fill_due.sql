-- name: fill_due
-- Each promise is due.
insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
select
    i.account_id,
    i.intent_id,
    i.notify_at,
    i.kind,
    i.channel,
    i.give_up_at
from duebook.intent as i;
