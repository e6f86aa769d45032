-- Which of the given windows (batch, token, flush) this database does not know: neither in a live
-- batch, nor in one that ended, nor as lost when a restore was accepted. The ordinal is the place
-- in the arrays, from 1; known_flush_no is null when the batch itself is not known.
create or replace function duebook.find_lost_batches(
    p_batch_ids bigint[],
    p_tokens uuid[],
    p_flush_nos integer[]
) returns table (ordinal bigint, known_flush_no integer)
language sql
stable
set search_path = ''
as $$
    select w.ordinal, coalesce(b.flush_no, e.flush_no)
    from unnest(p_batch_ids, p_tokens, p_flush_nos)
        with ordinality as w (batch_id, token, flush_no, ordinal)
    left join duebook.batch as b on w.batch_id = b.batch_id and w.token = b.token
    left join duebook.batch_ended as e on w.batch_id = e.batch_id and w.token = e.token
    where
        coalesce(greatest(b.flush_no, e.flush_no), -1) < w.flush_no
        and not exists (
            select
            from duebook.restore_accepted as r
            cross join lateral pg_catalog.jsonb_to_recordset(r.witnessed)
                as x (token uuid, flush_no integer)
            where x.token = w.token and x.flush_no >= w.flush_no
        );
$$;
comment on function duebook.find_lost_batches(bigint[], uuid[], integer[]) is
'Which of the given windows this database does not know: it is behind what was sent.';
