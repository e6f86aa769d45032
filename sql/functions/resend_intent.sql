-- Promises once more what has ended: a new intent with a key of its own (resend:<n>:<first key>)
-- and the facts of the first, due now. Returns the new key.
--
-- Refused for what has not ended (in doubt: resolve it; else it is still to come), for a repeat of
-- it that has not, and for acts inside the house. Calls for one key wait for each other. With
-- p_number, the same number again does nothing and returns its key: so a call whose answer was lost
-- can be repeated.
create or replace function duebook.resend_intent(
    p_account_id text,
    p_operation_key text,
    p_reason text,
    p_by text,
    p_number integer default null
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_intent duebook.intent;
    v_count integer;
    v_key text;
    v_intent_id bigint;
    v_now timestamptz;
    v_give_up_after interval;
begin
    if p_operation_key like 'resend:%' then
        raise exception 'a repeat is not repeated: resend its first key'
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    select i.* into v_intent
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key
    for update;
    if not found then
        raise exception 'there is no intent with this operation key for this account'
            using errcode = 'no_data_found';
    end if;
    if v_intent.channel = 'internal' then
        raise exception 'this key is an act inside the house: there is nothing to send again'
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    select pg_catalog.count(*) + 1 into v_count
    from duebook.intent as i
    where
        i.account_id = p_account_id
        and i.subject = v_intent.subject
        and i.operation_key like 'resend:%'
        and pg_catalog.substr(
            i.operation_key, pg_catalog.strpos(pg_catalog.substr(i.operation_key, 8), ':') + 8
        ) = p_operation_key;
    if p_number between 1 and v_count - 1 then
        return 'resend:' || p_number || ':' || p_operation_key;
    end if;
    if p_number <> v_count then
        raise exception 'the next repeat of this key is number %', v_count
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    v_key := case when v_count > 1 then 'resend:' || (v_count - 1) || ':' else '' end
        || p_operation_key;
    if not exists (
        select from duebook.outcome as o
        where o.account_id = p_account_id and o.operation_key = v_key
    ) then
        raise exception
            '% has not ended: resolve it if it is in doubt, else it is still to come', v_key
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    v_key := 'resend:' || v_count || ':' || p_operation_key;
    v_now := pg_catalog.clock_timestamp();
    select coalesce(
        (select k.give_up_after from duebook.intent_kind as k where k.kind = v_intent.kind),
        v_intent.give_up_at - v_intent.notify_at
    ) into v_give_up_after;
    insert into duebook.intent (
        account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
        provider_account, run_id, change_id, ownership, cohort_version, intended_local, zone,
        tzdb_version
    )
    values (
        p_account_id, v_key, v_intent.kind, v_intent.subject, v_intent.payment_id,
        v_intent.channel, v_now, v_now + v_give_up_after, v_intent.provider_account,
        v_intent.run_id, v_intent.change_id, 'live', v_intent.cohort_version,
        v_intent.intended_local, v_intent.zone, v_intent.tzdb_version
    )
    returning intent_id into v_intent_id;
    insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
    values (
        p_account_id, v_intent_id, v_now, v_intent.kind, v_intent.channel, v_now + v_give_up_after
    );
    -- In the story of both keys.
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    select
        p_by, 'resend_intent', p_account_id, s.subject,
        pg_catalog.jsonb_build_object(
            'reason', p_reason, 'first_key', p_operation_key, 'new_key', v_key
        )
    from unnest(array[p_operation_key, v_key]) as s (subject);
    return v_key;
end;
$$;
comment on function duebook.resend_intent(text, text, text, text, integer) is
'Promises once more what has ended, under a key of its own, due now. Returns the new key.';
