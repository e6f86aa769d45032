-- Is a promise at risk? One row per kind: what waits, how old the oldest due one is, what is stuck.
create or replace view duebook_reports.due_health as
with clock as (
    select clock_timestamp() as now
),

-- What holds expire by is no kind of notice: no file states it.
kind as (
    select
        n.kind,
        n.channel,
        n.enabled
    from duebook.intent_kind as n
    union all
    select
        'hold_expiry',
        'internal',
        true
),

waiting as (
    select
        d.kind,
        count(*) as scheduled,
        count(*) filter (where d.due_at <= c.now) as backlog,
        coalesce(
            max(extract(epoch from c.now - d.due_at)) filter (where d.due_at <= c.now), 0
        ) as oldest_due_s,
        min(d.due_at) filter (where d.due_at > c.now) as next_due_at
    from duebook.due as d
    cross join clock as c
    group by d.kind
),

enqueued as (
    select
        i.kind,
        count(*) as enqueued,
        count(*) filter (where b.lease_until < c.now) as lapsed
    from duebook.batch as b
    cross join clock as c
    cross join lateral unnest(b.account_ids, b.intent_ids) as member (account_id, intent_id)
    inner join duebook.intent as i using (account_id, intent_id)
    group by i.kind
),

held as (
    select
        h.kind,
        count(*) as held
    from duebook.held as h
    group by h.kind
),

in_doubt as (
    select
        u.kind,
        count(*) as in_doubt,
        max(extract(epoch from c.now - u.since)) as oldest_in_doubt_s
    from duebook.in_doubt as u
    cross join clock as c
    group by u.kind
)

select
    k.kind,
    k.channel,
    k.enabled,
    coalesce(w.scheduled, 0) as scheduled,
    coalesce(w.backlog, 0) as backlog,
    round(coalesce(w.oldest_due_s, 0), 3) as oldest_due_s,
    w.next_due_at,
    coalesce(e.enqueued, 0) as enqueued,
    coalesce(e.lapsed, 0) as lapsed,
    coalesce(h.held, 0) as held,
    coalesce(u.in_doubt, 0) as in_doubt,
    round(coalesce(u.oldest_in_doubt_s, 0), 3) as oldest_in_doubt_s,
    g.paused_until,
    c.now as read_at
from kind as k
cross join clock as c
left join waiting as w on k.kind = w.kind
left join enqueued as e on k.kind = e.kind
left join held as h on k.kind = h.kind
left join in_doubt as u on k.kind = u.kind
left join duebook.budget as g on k.channel = g.channel and c.now < g.paused_until;
comment on view duebook_reports.due_health is
'Is a promise at risk? One row per kind of notice, and one for the expiry of holds, as of now.';
comment on column duebook_reports.due_health.kind is 'Kind of notice.';
comment on column duebook_reports.due_health.channel is 'Channel that carries it.';
comment on column duebook_reports.due_health.enabled is 'Whether changes make notices of this kind.';
comment on column duebook_reports.due_health.scheduled is 'Waiting for their time or for a claim.';
comment on column duebook_reports.due_health.backlog is 'Of these, due now.';
comment on column duebook_reports.due_health.oldest_due_s is 'Age of the oldest due one, seconds; 0 without backlog.';
comment on column duebook_reports.due_health.next_due_at is 'When the next one becomes due.';
comment on column duebook_reports.due_health.enqueued is 'Held by senders.';
comment on column duebook_reports.due_health.lapsed is 'Of these, under a lease that is over: rescue takes them.';
comment on column duebook_reports.due_health.held is 'Waiting for a cause to clear.';
comment on column duebook_reports.due_health.in_doubt is 'The provider may have accepted: for a person.';
comment on column duebook_reports.due_health.oldest_in_doubt_s is 'Age of the oldest of these, seconds.';
comment on column duebook_reports.due_health.paused_until is 'Until when the channel is paused; null: it is not.';
comment on column duebook_reports.due_health.read_at is 'Database clock of this row.';
