-- name: create_archive_index
-- Its index on the time of archiving.
create index archived_at_idx_bench on public.a_bench (archived_at);
