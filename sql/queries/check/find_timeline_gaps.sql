-- name: find_timeline_gaps
-- The time line tells every fact of an intent. Facts that name no intent are in none; of the newest
-- ten thousand intents the facts are counted and compared with what the view tells.
with astray as (
    select
        x.account_id,
        x.intent_id
    from duebook.intent_change as x
    union all
    select
        q.account_id,
        q.intent_id
    from duebook.intent_request as q
),

newest as materialized (
    select
        i.account_id,
        i.intent_id,
        i.operation_key,
        i.change_id
    from duebook.intent as i
    order by i.intent_id desc
    limit 10000
),

fact as (
    select
        n.account_id,
        n.intent_id
    from newest as n
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.ledger_change as c
        on n.account_id = c.account_id and n.change_id = c.change_id
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.intent_change as x
        on n.account_id = x.account_id and n.intent_id = x.intent_id
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.intent_request as q
        on n.account_id = q.account_id and n.intent_id = q.intent_id
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.attempt as a
        on n.account_id = a.account_id and n.intent_id = a.intent_id
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.attempt_result as r
        on n.account_id = r.account_id and n.intent_id = r.intent_id
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.audit_event as e
        on n.account_id = e.account_id and n.operation_key = e.subject
    union all
    select
        n.account_id,
        n.intent_id
    from newest as n
    inner join duebook.outcome as o
        on n.account_id = o.account_id and n.operation_key = o.operation_key
),

counted as (
    select
        f.account_id,
        f.intent_id,
        count(*) as facts
    from fact as f
    group by f.account_id, f.intent_id
),

told as (
    select
        t.account_id,
        t.intent_id,
        count(*) as facts
    from newest as n
    inner join duebook_reports.intent_timeline as t
        on n.account_id = t.account_id and n.intent_id = t.intent_id
    where
        t.event in (
            'intent', 'ledger_change', 'intent_change', 'intent_request', 'attempt',
            'attempt_result', 'late_result', 'audit_event', 'outcome'
        )
    group by t.account_id, t.intent_id
),

gap as (
    select
        s.account_id,
        s.intent_id::text as operation_key
    from astray as s
    where
        not exists (
            select from duebook.intent as i
            where i.account_id = s.account_id and i.intent_id = s.intent_id
        )
    union
    select
        n.account_id,
        n.operation_key
    from newest as n
    inner join counted as c on n.account_id = c.account_id and n.intent_id = c.intent_id
    left join told as t on n.account_id = t.account_id and n.intent_id = t.intent_id
    where t.facts is distinct from c.facts
)

select
    g.account_id,
    g.operation_key
from gap as g
order by g.account_id, g.operation_key
limit :row_limit;
