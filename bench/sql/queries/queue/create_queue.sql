-- name: create_queue
-- The table of a PGMQ queue (1.5), as its `create` makes it.
create table public.q_bench (
    msg_id bigint primary key generated always as identity,
    read_ct integer not null default 0,
    enqueued_at timestamptz not null default now(),
    vt timestamptz not null,
    message jsonb
);
