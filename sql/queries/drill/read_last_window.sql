-- name: read_last_window
-- The keys of the window that a sender had opened last in a batch that it did not end, in order.
select
    b.batch_id,
    b.lease_until,
    w.ordinal > b.window_start and w.ordinal <= b.mark as is_in_window,
    w.account_id,
    i.operation_key
from duebook.batch as b
cross join
    lateral unnest(b.account_ids, b.intent_ids) with ordinality
        as w (account_id, intent_id, ordinal)
inner join duebook.intent as i
    on w.account_id = i.account_id and w.intent_id = i.intent_id
where b.sender like :sender::text || '@%'
order by b.batch_id, w.ordinal;
