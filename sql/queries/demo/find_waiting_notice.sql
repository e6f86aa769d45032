-- name: find_waiting_notice
-- One notice of a kind that waits for its time.
select
    i.operation_key,
    i.payment_id,
    i.due_at
from duebook_reports.intents as i
where
    i.kind = :kind
    and i.state = 'scheduled'
order by i.due_at, i.operation_key
limit 1;
