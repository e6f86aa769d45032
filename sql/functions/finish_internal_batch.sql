-- The one transaction of an internal batch: what it is about is done here and nowhere else, so
-- that act and outcome stand or fall together. Nothing leaves the house; there is never a doubt.
--
-- The token fences it. state is applied, repeated (it had been applied and its answer was lost) or
-- gone (the batch was rescued; its holds are due again). One bad row does not stop the others: if
-- the whole can't be done, each is tried by itself, and what fails is held.
create or replace function duebook.finish_internal_batch(
    p_batch_id bigint,
    p_token uuid,
    p_due_offset interval
) returns table (state text, done integer, expired integer, skipped integer, held integer)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_batch duebook.batch;
    v_one record;
    v_all record;
begin
    select b.* into v_batch
    from duebook.batch as b
    where b.batch_id = p_batch_id and b.token = p_token
    for update;
    if not found then
        return query
        select
            case
                when exists (
                    select
                    from duebook.batch_ended as e
                    where
                        e.batch_id = p_batch_id and e.token = p_token and e.how = 'finished'
                ) then 'repeated'
                else 'gone'
            end,
            0, 0, 0, 0;
        return;
    end if;

    begin
        select e.* into v_all
        from duebook.expire_holds(v_batch, 0, v_batch.size, p_due_offset) as e;
    exception
        when transaction_rollback or insufficient_resources or object_not_in_prerequisite_state
            or operator_intervention or system_error or internal_error then
            raise;
        when others then
            select 0 as done, 0 as expired, 0 as skipped, 0 as held into v_all;
            for v_one in
                select e.*
                from pg_catalog.generate_series(0, v_batch.size - 1) as n (place)
                cross join lateral duebook.expire_one_hold(v_batch, n.place, p_due_offset) as e
            loop
                v_all.done := v_all.done + v_one.done;
                v_all.expired := v_all.expired + v_one.expired;
                v_all.skipped := v_all.skipped + v_one.skipped;
                v_all.held := v_all.held + v_one.held;
            end loop;
    end;

    delete from duebook.batch as b where b.batch_id = p_batch_id;
    insert into duebook.batch_ended (batch_id, token, sender, how, flush_no, size, claimed_at)
    values (
        p_batch_id, p_token, v_batch.sender, 'finished', v_batch.flush_no + 1, v_batch.size,
        v_batch.claimed_at
    );
    return query select 'applied', v_all.done, v_all.expired, v_all.skipped, v_all.held;
end;
$$;
comment on function duebook.finish_internal_batch(bigint, uuid, interval) is
'Does what an internal batch is about and ends it, in one transaction fenced by its token. Returns applied, repeated or gone, and how many ended how.';
