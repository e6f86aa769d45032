-- name: fill_intents
-- Promises that are due now, dealt out to the accounts one after another.
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
    'account-' || lpad((n % :accounts::integer)::text, 6, '0') as account_id,
    'payment_settled:noop:bench:P' || lpad(n::text, 10, '0') || ':E' || lpad(n::text, 10, '0')
    || ':v1' as operation_key,
    'payment_settled' as kind,
    'P' || lpad(n::text, 10, '0') as subject,
    'P' || lpad(n::text, 10, '0') as payment_id,
    'noop' as channel,
    statement_timestamp() - interval '1 second' + n * interval '1 microsecond' as notify_at,
    statement_timestamp() + interval '7 days' as give_up_at,
    'bench' as provider_account,
    'live' as ownership
from generate_series(0, :rows::integer - 1) as n;
