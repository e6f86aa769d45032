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
    'account-' || lpad((n % :accounts::integer)::text, 6, '0') as account_id,
    n as intent_id,
    1 as attempt_no,
    :first::integer as batch_id,
    n - :first::integer as position,
    statement_timestamp() as due_at,
    0 as tries,
    0 as suspicions,
    statement_timestamp() as claimed_at
from generate_series(:first::integer, :last::integer) as n;
