-- name: compare_witness
-- Since when the server runs, and each window of the witness that this database does not know, as
-- [ordinal, the flush that it knows of that batch].
select
    pg_postmaster_start_time() as server_started_at,
    (
        select jsonb_agg(jsonb_build_array(l.ordinal, l.known_flush_no) order by l.ordinal)
        from duebook.find_lost_batches(
            :batch_ids::bigint[], :tokens::uuid[], :flush_nos::integer[]
        ) as l
    ) as lost;
