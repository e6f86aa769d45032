-- Rescues at most p_most batches whose lease has lapsed. Call it in a transaction of its own.
--
-- Each batch is locked first and its results are read in a later statement: in one statement they
-- would be those of before the lock, and what a flush sent meanwhile would be due again.
-- A batch that can't be rescued is taken apart, intent by intent. Batches that somebody flushes or
-- rescues at this moment are skipped.
create or replace function duebook.rescue_batches(p_most integer, p_window integer)
returns table (batch_id bigint, how text, back_in_due integer, in_doubt integer, held integer)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_batch duebook.batch;
    v_counts record;
    v_how text;
begin
    for v_batch in
        select b.*
        from duebook.batch as b
        where b.lease_until <= (select pg_catalog.clock_timestamp())
        order by b.lease_until
        limit p_most
        for update skip locked
    loop
        v_how := 'rescued';
        begin
            select r.* into v_counts from duebook.rescue_batch(v_batch, p_window) as r;
        exception
            when transaction_rollback or insufficient_resources or object_not_in_prerequisite_state
                or operator_intervention or system_error or internal_error then
                raise;
            when others then
                v_how := 'dismantled';
                select r.* into v_counts from duebook.dismantle_batch(v_batch, sqlstate) as r;
        end;

        delete from duebook.batch as b where b.batch_id = v_batch.batch_id;
        insert into duebook.batch_ended (
            batch_id, token, sender, how, flush_no, size, claimed_at, safe_retry_until,
            untried_from
        )
        select
            v_batch.batch_id, v_batch.token, v_batch.sender, v_how, v_batch.flush_no,
            v_batch.size, v_batch.claimed_at, v_batch.safe_retry_until,
            (
                select a.position
                from duebook.attempt as a
                where
                    a.account_id = v_batch.account_ids[v_batch.mark + 1]
                    and a.intent_id = v_batch.intent_ids[v_batch.mark + 1]
                    and a.attempt_no = v_batch.attempt_nos[v_batch.mark + 1]
            );
        return query
        select v_batch.batch_id, v_how, v_counts.back_in_due, v_counts.in_doubt, v_counts.held;
    end loop;
end;
$$;
comment on function duebook.rescue_batches(integer, integer) is
'Rescues at most p_most batches whose lease has lapsed; p_window is the largest window of sends. One row per batch.';
