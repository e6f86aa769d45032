-- name: read_missed_facts
-- How many newer intents of the same kind and subject are due by now, for the missed intents of a
-- window, each counted up to what its policy asks for.
select
    m.account_id,
    m.intent_id,
    (
        select count(*)
        from (
            select
            from duebook.intent as newer
            where
                newer.account_id = m.account_id
                and newer.subject = i.subject
                and newer.kind = i.kind
                and duebook.current_ownership(
                    newer.account_id, newer.intent_id, newer.ownership
                ) = 'live'
                and newer.notify_at <= :now::timestamptz
                and (newer.notify_at, newer.intent_id) > (i.notify_at, i.intent_id)
            limit m.most
        ) as counted
    )::integer as newer_due
from
    unnest(:account_ids::text[], :intent_ids::bigint[], :most::integer[])
        as m (account_id, intent_id, most)
cross join lateral (
    select
        n.subject,
        n.kind,
        n.notify_at,
        n.intent_id
    from duebook.intent as n
    where n.account_id = m.account_id and n.intent_id = m.intent_id
    limit 1
) as i;
