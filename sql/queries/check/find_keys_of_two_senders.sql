-- name: find_keys_of_two_senders
-- A key that an old sender took is its own: ours is a proposal, and was not sent.
select
    k.account_id,
    k.operation_key
from duebook.sender_key as k
inner join duebook.intent as i
    on k.account_id = i.account_id and k.operation_key = i.operation_key
left join duebook.outcome as o
    on k.account_id = o.account_id and k.operation_key = o.operation_key
where
    k.sender <> 'duebook'
    and (
        o.result = 'sent'
        or duebook.current_ownership(i.account_id, i.intent_id, i.ownership) = 'live'
    )
order by k.account_id, k.operation_key
limit :row_limit;
