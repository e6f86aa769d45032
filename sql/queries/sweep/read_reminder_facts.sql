-- name: read_reminder_facts
-- What the reminders of a window say: the texts of their schedule as they are now, and their date.
select
    i.account_id,
    i.intent_id,
    s.schedule,
    s.message,
    i.intended_local,
    i.zone
from unnest(:account_ids::text[], :intent_ids::bigint[]) as w (account_id, intent_id)
inner join duebook.intent as i on w.account_id = i.account_id and w.intent_id = i.intent_id
inner join duebook.schedule as s
    on i.account_id = s.account_id and s.schedule = substr(i.subject, length('schedule:') + 1)
where i.subject like 'schedule:%';
