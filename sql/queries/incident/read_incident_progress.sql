-- name: read_incident_progress
-- How far the backlog has fallen: what is due now and how old its oldest is, what is in doubt, and
-- how many of those that the incident noted were sent, have ended, or are due later.
with backlog as (
    select
        count(*) as due,
        min(d.due_at) as oldest_at
    from duebook.due as d
    where d.due_at <= (select clock_timestamp())
),

fate as (
    select
        count(*) filter (where f.place = 'sent') as sent,
        count(*) filter (where f.place = 'done') as done,
        count(*) filter (where f.place in ('sent', 'done', 'expired')) as ended,
        count(*) filter (where f.place = 'later') as later,
        count(*) filter (where f.place = 'batch') as sending,
        max(f.stands_at) filter (where f.place = 'later') as last_at
    from duebook.incident_fates(:incident_id::bigint, clock_timestamp()) as f
)

select
    clock_timestamp() as at,
    b.due,
    coalesce(extract(epoch from clock_timestamp() - b.oldest_at), 0)::float8 as oldest_due_s,
    (select count(*) from duebook.in_doubt) as in_doubt,
    f.sent,
    f.done,
    f.ended,
    f.later,
    f.sending,
    f.last_at
from backlog as b
cross join fate as f;
