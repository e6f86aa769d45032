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
    'account-' || lpad((n % :accounts::integer)::text, 6, '0'),
    'payment_settled:noop:bench:P' || lpad(n::text, 10, '0') || ':E' || lpad(n::text, 10, '0')
    || ':v1',
    n,
    'payment_settled',
    'P' || lpad(n::text, 10, '0'),
    'sent',
    statement_timestamp(),
    statement_timestamp(),
    1
from generate_series(:first::integer, :last::integer) as n;
