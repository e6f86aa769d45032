-- name: supersede_intents
-- Ends older unsent intents: what is due, held or proposed leaves its place with its outcome; what
-- a batch holds, or is in doubt, gets a request that the gate reads.
with from_due as (
    delete from duebook.due as d
    using older_intent as i
    where d.account_id = i.account_id and d.intent_id = i.intent_id
    returning d.account_id, d.intent_id, d.due_at
),

from_held as (
    delete from duebook.held as h
    using older_intent as i
    where h.account_id = i.account_id and h.intent_id = i.intent_id
    returning h.account_id, h.intent_id, h.due_at
),

from_proposed as (
    delete from duebook.proposed as p
    using older_intent as i
    where p.account_id = i.account_id and p.intent_id = i.intent_id
    returning p.account_id, p.intent_id
),

left_place as (
    select
        d.account_id,
        d.intent_id,
        d.due_at
    from from_due as d
    union all
    select
        h.account_id,
        h.intent_id,
        h.due_at
    from from_held as h
    union all
    select
        p.account_id,
        p.intent_id,
        null
    from from_proposed as p
),

ended as (
    insert into duebook.outcome (
        account_id, operation_key, intent_id, kind, payment_id, result, reason, due_at
    )
    select
        i.account_id,
        i.operation_key,
        i.intent_id,
        i.kind,
        i.payment_id,
        'expired',
        'superseded',
        coalesce(l.due_at, i.notify_at)
    from left_place as l
    inner join older_intent as i on l.account_id = i.account_id and l.intent_id = i.intent_id
    on conflict (account_id, operation_key) do nothing
)

insert into duebook.intent_request (account_id, intent_id, request, reason, requested_by)
select
    i.account_id,
    i.intent_id,
    'supersede',
    'newer evidence on the payment',
    concat('run ', :run_id::bigint)
from older_intent as i
where
    not exists (
        select from left_place as l
        where l.account_id = i.account_id and l.intent_id = i.intent_id
    )
    and not exists (
        select from duebook.intent_request as r
        where
            r.account_id = i.account_id
            and r.intent_id = i.intent_id
            and r.request = 'supersede'
    );
