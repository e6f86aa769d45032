-- Takes apart a batch that could not be rescued as a whole, intent by intent: below the mark
-- without a result -> in_doubt, from the mark on -> held. An intent that can't be placed at all is
-- noted and does not stop the others.
create or replace function duebook.dismantle_batch(p_batch duebook.batch, p_error text)
returns table (back_in_due integer, in_doubt integer, held integer)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_item record;
    v_in_doubt integer := 0;
    v_held integer := 0;
begin
    for v_item in
        select w.account_id, w.intent_id, w.attempt_no, w.ordinal <= p_batch.mark as may_be_tried
        from unnest(p_batch.account_ids, p_batch.intent_ids, p_batch.attempt_nos)
            with ordinality as w (account_id, intent_id, attempt_no, ordinal)
        where not exists (
            select
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no
        )
        order by w.account_id, w.intent_id
    loop
        begin
            if v_item.may_be_tried then
                insert into duebook.in_doubt (
                    account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
                    give_up_at, tries, claims, look_up_from
                )
                select
                    i.account_id, i.intent_id, v_item.attempt_no, p_batch.batch_id,
                    'rescue_failed', coalesce(a.due_at, i.notify_at), i.kind, i.channel,
                    i.give_up_at, coalesce(a.tries, 0), v_item.attempt_no,
                    pg_catalog.clock_timestamp()
                from duebook.intent as i
                left join duebook.attempt as a
                    on
                        i.account_id = a.account_id
                        and i.intent_id = a.intent_id
                        and a.attempt_no = v_item.attempt_no
                where i.account_id = v_item.account_id and i.intent_id = v_item.intent_id;
            else
                insert into duebook.held (
                    account_id, intent_id, cause, due_at, kind, channel, give_up_at,
                    tries, claims, detail
                )
                select
                    i.account_id, i.intent_id, 'rescue_failed', coalesce(a.due_at, i.notify_at),
                    i.kind, i.channel, i.give_up_at, coalesce(a.tries, 0), v_item.attempt_no,
                    'SQLSTATE ' || p_error
                from duebook.intent as i
                left join duebook.attempt as a
                    on
                        i.account_id = a.account_id
                        and i.intent_id = a.intent_id
                        and a.attempt_no = v_item.attempt_no
                where i.account_id = v_item.account_id and i.intent_id = v_item.intent_id;
            end if;
            if not found then
                raise exception 'no such intent' using errcode = 'no_data_found';
            end if;
            v_in_doubt := v_in_doubt + v_item.may_be_tried::integer;
            v_held := v_held + (not v_item.may_be_tried)::integer;
        exception
            when integrity_constraint_violation or data_exception or no_data_found then
                insert into duebook.audit_event (actor, action, account_id, subject, detail)
                values (
                    'rescue', 'leave_intent', v_item.account_id, 'batch:' || p_batch.batch_id,
                    pg_catalog.jsonb_build_object(
                        'intent_id', v_item.intent_id, 'attempt_no', v_item.attempt_no,
                        'sqlstate', sqlstate
                    )
                );
        end;
    end loop;
    return query select 0, v_in_doubt, v_held;
end;
$$;
comment on function duebook.dismantle_batch(duebook.batch, text) is
'Takes apart a batch that could not be rescued as a whole, intent by intent, into in_doubt or held.';
