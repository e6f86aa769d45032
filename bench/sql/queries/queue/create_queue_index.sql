-- name: create_queue_index
-- Its index on the end of the visibility time-out.
create index q_bench_vt_idx on public.q_bench (vt asc);
