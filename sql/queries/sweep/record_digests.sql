-- name: record_digests
-- Fixes which notices go in which message, before any of it is sent.
with wanted as materialized (
    select
        w.account_id,
        w.digest_key,
        array_agg(w.intent_id order by w.place) as intent_ids,
        array_agg(w.attempt_no order by w.place) as attempt_nos
    from
        unnest(
            :account_ids::text[],
            :digest_keys::text[],
            :intent_ids::bigint[],
            :attempt_nos::integer[]
        ) with ordinality as w (account_id, digest_key, intent_id, attempt_no, place)
    group by w.account_id, w.digest_key
),

fixed as (
    insert into duebook.digest (account_id, digest_key, channel, intent_ids)
    select
        w.account_id,
        w.digest_key,
        :channel::text,
        w.intent_ids
    from wanted as w
    order by w.account_id, w.digest_key
    on conflict do nothing
)

insert into duebook.digest_member (account_id, intent_id, attempt_no, digest_key)
select
    w.account_id,
    m.intent_id,
    m.attempt_no,
    w.digest_key
from wanted as w
cross join lateral unnest(w.intent_ids, w.attempt_nos) as m (intent_id, attempt_no)
on conflict do nothing;
