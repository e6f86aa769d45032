-- name: read_former_digests
-- In which message each of these intents went last, and who else was in it.
select
    w.account_id,
    w.intent_id,
    d.digest_key,
    d.intent_ids
from
    unnest(:account_ids::text[], :intent_ids::bigint[], :attempt_nos::integer[])
        as w (account_id, intent_id, attempt_no)
cross join
    lateral (
        select m.digest_key
        from duebook.digest_member as m
        where
            m.account_id = w.account_id
            and m.intent_id = w.intent_id
            and m.attempt_no < w.attempt_no
        order by m.attempt_no desc
        limit 1
    ) as m
inner join duebook.digest as d on w.account_id = d.account_id and m.digest_key = d.digest_key;
