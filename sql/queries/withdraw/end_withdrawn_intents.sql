-- name: end_withdrawn_intents
-- Notices that the file's versions gave rise to: those that wait end as superseded, those that a
-- sender holds are asked for, and those that have left are counted with their keys.
with versions as materialized (
    select
        v.entry_id,
        v.version
    from duebook.settlement_entry_version as v
    where v.provider_account = :provider_account and v.file_id = :file_id::bigint
),

notice as materialized (
    select
        i.account_id,
        i.intent_id,
        i.operation_key
    from versions as v
    inner join duebook.ledger_change as c
        on
            c.provider_account = :provider_account
            and v.entry_id = c.entry_id
            and v.version = c.entry_version
    inner join duebook.intent as i on c.change_id = i.change_id and c.account_id = i.account_id
),

done as (
    select e.*
    from (
        select
            array_agg(n.account_id) as account_ids,
            array_agg(n.intent_id) as intent_ids
        from notice as n
    ) as g
    cross join
        lateral duebook.end_waiting_intents(
            g.account_ids,
            g.intent_ids,
            'supersede',
            'superseded',
            'its file was withdrawn',
            :by::text
        ) as e
    where g.account_ids is not null
)

select
    count(*) filter (where d.done = 'ended') as ended,
    count(*) filter (where d.done = 'requested') as requested,
    count(*) filter (where o.result = 'sent') as sent,
    coalesce(
        (array_agg(n.operation_key order by n.operation_key) filter (where o.result = 'sent'))[
            :100
        ],
        '{}'
    ) as sent_keys
from notice as n
inner join done as d on n.account_id = d.account_id and n.intent_id = d.intent_id
left join duebook.outcome as o
    on n.account_id = o.account_id and n.operation_key = o.operation_key and d.done = 'had_ended';
