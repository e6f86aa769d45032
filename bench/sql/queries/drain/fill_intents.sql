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
    'account-' || lpad((n % :accounts::integer)::text, 6, '0'),
    'payment_settled:noop:bench:P' || lpad(n::text, 10, '0') || ':E' || lpad(n::text, 10, '0')
    || ':v1',
    'payment_settled',
    'P' || lpad(n::text, 10, '0'),
    'P' || lpad(n::text, 10, '0'),
    'noop',
    statement_timestamp() - interval '1 second' + n * interval '1 microsecond',
    statement_timestamp() + interval '7 days',
    'bench',
    'live'
from generate_series(0, :rows::integer - 1) as n;
