-- name: list_doubts_to_look_up
-- Intents in doubt of one channel, the oldest first, with the time in which they may have been
-- tried: from the first claim whose end is not known until the last one's lease and time-out had
-- surely passed. What a restore took back may have been sent as soon as it could be.
select
    u.account_id,
    u.intent_id,
    i.operation_key,
    coalesce(
        least(
            a.claimed_at,
            case when u.cause = 'restored' then least(i.created_at, u.due_at, c.evidence_at) end
        ),
        i.created_at
    ) as tried_from,
    u.look_up_from as tried_until,
    u.since
from duebook.in_doubt as u
inner join duebook.intent as i on u.account_id = i.account_id and u.intent_id = i.intent_id
left join duebook.ledger_change as c
    on u.cause = 'restored' and i.account_id = c.account_id and i.change_id = c.change_id
left join lateral (
    select min(t.claimed_at) as claimed_at
    from duebook.attempt as t
    left join duebook.attempt_result as r
        on
            t.account_id = r.account_id
            and t.intent_id = r.intent_id
            and t.attempt_no = r.attempt_no
    where
        t.account_id = u.account_id
        and t.intent_id = u.intent_id
        and (r.result is null or r.result = 'unknown')
) as a on true
where
    u.channel = :channel::text
    and (u.since, u.account_id, u.intent_id)
    > (:after_since::timestamptz, :after_account_id::text, :after_intent_id::bigint)
order by u.since, u.account_id, u.intent_id
limit :most;
