-- name: find_older_intents
-- Intents without an outcome, of kinds that are superseded, on payments that changed in this run.
insert into older_intent
select
    i.account_id,
    i.intent_id,
    i.operation_key,
    i.kind,
    i.payment_id,
    i.notify_at
from (select distinct
    d.account_id,
    d.payment_id
from change_draft as d) as c
inner join duebook.intent as i
    on c.account_id = i.account_id and i.subject = concat('payment:', c.payment_id)
inner join duebook.intent_kind as k on i.kind = k.kind and k.is_superseded
left join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
where i.run_id is not null and i.run_id <> :run_id and o.operation_key is null;
