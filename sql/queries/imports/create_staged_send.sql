-- name: create_staged_send
-- Sends of an old sender from one file, before they are compared with those that are known.
create temporary table staged_send (
    line_no bigint not null,
    external_id text,
    account_id text,
    operation_key text,
    kind text,
    channel text,
    payment_id text,
    sent_at timestamptz
);
