-- name: read_story_account
-- What is known of a customer account, without any address: where it can be told, what it owns.
select
    :account_id::text as account_id,
    coalesce(
        (
            select array_agg(c.channel order by c.channel)
            from duebook.contact as c
            where c.account_id = :account_id
        ),
        '{}'
    ) as channels,
    coalesce(
        (
            select array_agg(x.channel || ': ' || x.reason order by x.channel)
            from duebook.suppression as x
            where x.account_id = :account_id
        ),
        '{}'
    ) as suppressions,
    coalesce(
        (
            select array_agg(n.kind || ' by ' || n.channel order by n.kind, n.channel)
            from duebook.consent as n
            where n.account_id = :account_id and not n.granted
        ),
        '{}'
    ) as refusals,
    (
        select count(*) from duebook.intent as i
        where i.account_id = :account_id
    ) as intent_count;
