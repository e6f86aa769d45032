-- name: find_sent_without_result
-- What ended as sent was accepted by a channel: an attempt of it has a result that says so, or its
-- doubt was resolved so, by a look-up or a person.
select
    o.account_id,
    o.operation_key
from duebook.outcome as o
where
    o.result = 'sent'
    and o.attempt_no is not null
    and not exists (
        select 1 from duebook.attempt_result as r
        where r.account_id = o.account_id and r.intent_id = o.intent_id and r.result = 'sent'
    )
    and not exists (
        select 1 from duebook.audit_event as e
        where
            e.subject = o.operation_key
            and e.account_id = o.account_id
            and e.action = 'resolve_in_doubt'
            and (e.detail ->> 'accepted')::boolean
    )
order by o.account_id, o.operation_key
limit :row_limit;
