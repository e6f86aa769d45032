-- name: fill_notices
-- Promises by mail that are due now, one for each change.
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
    ownership,
    change_id
)
select
    l.account_id,
    'payment_settled:email:bench:' || l.payment_id || ':E' || l.change_id || ':v1' as operation_key,
    'payment_settled' as kind,
    'payment:' || l.payment_id as subject,
    l.payment_id,
    'email' as channel,
    statement_timestamp() - interval '1 second' + l.change_id * interval '1 microsecond'
        as notify_at,
    statement_timestamp() + interval '7 days' as give_up_at,
    'bench' as provider_account,
    'live' as ownership,
    l.change_id
from duebook.ledger_change as l
order by l.change_id;
