-- Who was told what, who will be, and who was not, and why? Without an outcome it still waits.
select
    i.account_id,
    i.payment_id,
    i.kind,
    i.state,
    o.result,
    o.reason
from duebook_reports.intents as i
left join duebook_reports.outcomes as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
order by i.account_id, i.payment_id, i.kind, i.operation_key;
