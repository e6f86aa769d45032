-- name: create_archive
-- The table of its archive.
create table public.a_bench (
    msg_id bigint primary key,
    read_ct integer not null default 0,
    enqueued_at timestamptz not null default now(),
    archived_at timestamptz not null default now(),
    vt timestamptz not null,
    message jsonb
);
