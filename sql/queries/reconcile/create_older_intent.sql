-- name: create_older_intent
-- Unsent intents that newer evidence on their payment ends.
create temporary table older_intent (
    account_id text not null,
    intent_id bigint not null,
    operation_key text not null,
    kind text not null,
    payment_id text,
    notify_at timestamptz not null
);
