-- name: list_doubts_to_look_up
-- Intents in doubt of one channel, the oldest first, with the time in which they may have been
-- tried: from the claim of the attempt until its lease and time-out had surely passed.
select
    u.account_id,
    u.intent_id,
    i.operation_key,
    a.claimed_at as tried_from,
    u.look_up_from as tried_until,
    u.since
from duebook.in_doubt as u
inner join duebook.intent as i on u.account_id = i.account_id and u.intent_id = i.intent_id
inner join duebook.attempt as a
    on
        u.account_id = a.account_id
        and u.intent_id = a.intent_id
        and u.attempt_no = a.attempt_no
where
    u.channel = :channel::text
    and (u.since, u.account_id, u.intent_id)
    > (:after_since::timestamptz, :after_account_id::text, :after_intent_id::bigint)
order by u.since, u.account_id, u.intent_id
limit :most;
