-- The hold at one position of an internal batch by itself, since the whole can't be done;
-- one that can't be done at all is held, with the code of the error.
create or replace function duebook.expire_one_hold(
    p_batch duebook.batch,
    p_position integer,
    p_due_offset interval
) returns table (done integer, expired integer, skipped integer, held integer)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
begin
    return query
    select e.*
    from duebook.expire_holds(p_batch, p_position, p_position + 1, p_due_offset) as e;
exception
    when transaction_rollback or insufficient_resources or object_not_in_prerequisite_state
        or operator_intervention or system_error or internal_error then
        raise;
    when others then
        return query
        with bad as (
            select w.account_id, w.intent_id, w.attempt_no, w.due_at, i.kind, i.give_up_at
            from duebook.read_batch_window(p_batch.batch_id, p_position, p_position + 1) as w
            left join duebook.intent as i
                on w.account_id = i.account_id and w.intent_id = i.intent_id
        ),
        answered as (
            insert into duebook.attempt_result (
                account_id, intent_id, attempt_no, batch_id, flush_no, result, reason, finished_at
            )
            select
                b.account_id, b.intent_id, b.attempt_no, p_batch.batch_id, p_batch.flush_no + 1,
                'held', 'gate_failed', pg_catalog.clock_timestamp()
            from bad as b
            on conflict do nothing
        ),
        kept as (
            insert into duebook.held (
                account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims,
                detail, retest_at
            )
            select
                b.account_id, b.intent_id, 'gate_failed', b.due_at, b.kind, p_batch.channel,
                b.give_up_at, 0, b.attempt_no, 'SQLSTATE ' || sqlstate,
                pg_catalog.clock_timestamp() + interval '10 minutes'
            from bad as b
            where b.kind is not null
            on conflict do nothing
        )
        select 0, 0, 0, pg_catalog.count(*)::integer from bad;
end;
$$;
comment on function duebook.expire_one_hold(duebook.batch, integer, interval) is
'Expires the hold at one position of an internal batch by itself; one that can''t be is held.';
