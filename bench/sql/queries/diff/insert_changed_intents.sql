-- name: insert_changed_intents
-- A promise for each changed row of a payment, and its place among what is due.
with written as (
    insert into duebook.intent (
        account_id,
        operation_key,
        kind,
        subject,
        payment_id,
        channel,
        notify_at,
        give_up_at,
        provider_account,
        ownership
    )
    select
        e.account_id,
        'payment_settled:noop:bench:' || e.payment_id || ':' || e.entry_id || ':v' || e.version
            as operation_key,
        'payment_settled' as kind,
        e.payment_id as subject,
        e.payment_id,
        'noop' as channel,
        now() as notify_at,
        now() + interval '7 days' as give_up_at,
        'bench' as provider_account,
        'live' as ownership
    from changed_entry as c
    inner join duebook.settlement_entry as e
        on e.provider_account = 'bench' and c.entry_id = e.entry_id
    where e.account_id is not null
    on conflict do nothing
    returning account_id, intent_id, notify_at, kind, channel, give_up_at
)

insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
select
    w.account_id,
    w.intent_id,
    w.notify_at,
    w.kind,
    w.channel,
    w.give_up_at
from written as w;
