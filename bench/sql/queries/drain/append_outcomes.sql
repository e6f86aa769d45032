-- name: append_outcomes
-- The floor, second half: outcome rows made up by the server, as wide as Duebook's, with their key.
insert into duebook.outcome (
    account_id,
    operation_key,
    intent_id,
    kind,
    payment_id,
    result,
    due_at,
    ended_at,
    attempt_no
)
select
    'account-' || lpad((n % :accounts::integer)::text, 6, '0') as account_id,
    'payment_settled:noop:bench:P' || lpad(n::text, 10, '0') || ':E' || lpad(n::text, 10, '0')
    || ':v1' as operation_key,
    n as intent_id,
    'payment_settled' as kind,
    'P' || lpad(n::text, 10, '0') as payment_id,
    'sent' as result,
    statement_timestamp() as due_at,
    statement_timestamp() as ended_at,
    1 as attempt_no
from generate_series(:first::integer, :last::integer) as n;
