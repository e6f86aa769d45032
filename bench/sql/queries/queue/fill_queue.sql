-- name: fill_queue
-- One message a promise: what a sender needs to know of it.
insert into public.q_bench (vt, message)
select
    clock_timestamp() as vt,
    jsonb_build_object(
        'account_id',
        'account-' || lpad((n % :accounts::integer)::text, 6, '0'),
        'operation_key',
        'payment_settled:noop:bench:P' || lpad(n::text, 10, '0') || ':E'
        || lpad(n::text, 10, '0') || ':v1'
    ) as message
from generate_series(0, :rows::integer - 1) as n;
