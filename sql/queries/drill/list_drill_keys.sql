-- name: list_drill_keys
-- Every key that there is and how it stands: its outcome, or where it waits; for when it was
-- promised (catching up may have put it off since), and how its local time was met.
select
    i.account_id,
    i.operation_key,
    i.kind,
    coalesce(o.result, r.state) as result,
    coalesce(o.reason, '') as reason,
    o.result is not null as has_ended,
    i.notify_at as due_at,
    o.intended_local,
    c.case_of,
    (
        select count(*)
        from duebook.attempt as a
        where a.account_id = i.account_id and a.intent_id = i.intent_id
    ) as attempts
from duebook.intent as i
left join duebook.outcome as o using (account_id, operation_key)
left join duebook_reports.intents as r using (account_id, operation_key)
left join duebook.occurrence as c
    on i.account_id = c.account_id and i.intent_id = c.intent_id
order by i.account_id, i.operation_key;
