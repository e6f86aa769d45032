-- Cancels one promise, in the caller's transaction. Returns cancelled (nothing will be sent),
-- requested (a sender holds it: the gate reads the request before its window) or ended (it had an
-- outcome already). Raises no_data_found for a key that is not known.
create or replace function duebook.cancel_intent(
    p_account_id text,
    p_operation_key text,
    p_reason text,
    p_by text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_intent_id bigint;
    v_done text;
begin
    select i.intent_id into v_intent_id
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key;
    if not found then
        raise exception 'there is no intent with this operation key for this account'
            using errcode = 'no_data_found';
    end if;

    select e.done into v_done
    from duebook.end_waiting_intents(
        array[p_account_id], array[v_intent_id], 'cancel', 'cancelled', p_reason, p_by
    ) as e;
    if v_done <> 'had_ended' then
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        values (
            p_by, 'cancel_intent', p_account_id, p_operation_key,
            pg_catalog.jsonb_build_object('reason', p_reason, 'done', v_done)
        );
    end if;
    return case v_done when 'ended' then 'cancelled' when 'had_ended' then 'ended' else v_done end;
end;
$$;
comment on function duebook.cancel_intent(text, text, text, text) is
'Cancels one promise. Returns cancelled, requested (a sender holds it) or ended (it had an outcome).';
