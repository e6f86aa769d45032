-- name: read_topic
-- Whether account, kind and channel are known: a decision about what there is not would be lost.
select
    exists (
        select from duebook.contact as c
        where c.account_id = :account_id::text
    )
    or exists (
        select from duebook.ledger_payment as p
        where p.account_id = :account_id::text
    )
    or exists (
        select from duebook.schedule as s
        where s.account_id = :account_id::text
    ) as is_account_known,
    :kind::text = '*' or exists (
        select from duebook.intent_kind as k
        where k.kind = :kind::text
    ) as is_kind_known,
    :channel::text = '*'
    or exists (
        select from duebook.intent_kind as k
        where k.channel = :channel::text or :channel::text = any(k.fail_over)
    )
    or exists (
        select from duebook.contact as c
        where c.account_id = :account_id::text and c.channel = :channel::text
    ) as is_channel_known;
