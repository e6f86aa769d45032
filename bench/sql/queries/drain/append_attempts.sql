-- name: append_attempts
-- The floor, first half: attempt rows made up by the server, as wide as Duebook's, with their key.
insert into duebook.attempt (
    account_id,
    intent_id,
    attempt_no,
    batch_id,
    position,
    due_at,
    tries,
    suspicions,
    claimed_at
)
select
    'account-' || lpad((n % :accounts::integer)::text, 6, '0'),
    n,
    1,
    :first::integer,
    n - :first::integer,
    statement_timestamp(),
    0,
    0,
    statement_timestamp()
from generate_series(:first::integer, :last::integer) as n;
