-- name: list_notices_of_payment
-- Every notice of one payment and where it stands.
select
    i.operation_key,
    i.kind,
    i.state,
    i.due_at,
    coalesce(i.reason, '') as reason
from duebook_reports.intents as i
where i.payment_id = :payment_id
order by i.notify_at, i.operation_key;
