-- An old sender asks whether it may send a key, and takes it in the same act. The answer:
--   send             it is yours, and recorded as sent by you: send it now, once
--   asked_before     you took it earlier; whether you sent it then, your own log says
--   duebook          Duebook sends it, or has: never send it
--   wait             Duebook is to tell this account, and has not seen the change yet: ask again
--                    after its next night
--   taken            another old sender has it
-- Its row in sender_key is where both sides meet: a run that promises the key live inserts the same
-- row in its transaction, so each waits for the other and exactly one has it. Call it in a
-- transaction of its own, with one key, and send after it has committed.
create or replace function duebook.ask_to_send(
    p_account_id text,
    p_operation_key text,
    p_sender text
) returns text
language plpgsql
security definer
set search_path = ''
as $$
declare
    v_taken_by text;
    v_ownership text;
    v_now timestamptz;
begin
    if not exists (
        select from duebook.old_sender as s where s.sender = p_sender and s.asks
    ) then
        raise exception '% is no old sender that asks: state [old_senders.%] in duebook.toml',
            p_sender, p_sender
            using errcode = 'no_data_found';
    end if;

    insert into duebook.sender_key as k (account_id, operation_key, sender)
    values (p_account_id, p_operation_key, p_sender)
    on conflict do nothing
    returning k.taken_at into v_now;
    if not found then
        select k.sender into v_taken_by
        from duebook.sender_key as k
        where k.account_id = p_account_id and k.operation_key = p_operation_key;
        return case
            when v_taken_by = p_sender then 'asked_before'
            when v_taken_by = 'duebook' then 'duebook'
            else 'taken'
        end;
    end if;

    select duebook.current_ownership(i.account_id, i.intent_id, i.ownership) into v_ownership
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key;
    if not found then
        select duebook.deciding_mode(a.mode, c.mode, a.notify_from) into v_ownership
        from duebook.provider_account as a
        left join
            lateral duebook.cohort_of(p_account_id, a.provider_account) as c on true
        where
            duebook.key_part(a.provider_account)
            = pg_catalog.split_part(p_operation_key, ':', 3);
        v_taken_by := 'wait';
    else
        v_taken_by := 'duebook';
    end if;
    if v_ownership = 'live' then
        delete from duebook.sender_key as k
        where k.account_id = p_account_id and k.operation_key = p_operation_key;
        return v_taken_by;
    end if;

    insert into duebook.observed_send (
        sender, source, external_id, account_id, operation_key, kind, channel, sent_at
    )
    values (
        p_sender, 'asked', 'asked:' || p_account_id || ':' || p_operation_key, p_account_id,
        p_operation_key, duebook.key_kind(p_operation_key),
        pg_catalog.split_part(p_operation_key, ':', 2), v_now
    )
    on conflict do nothing;
    return 'send';
end;
$$;
comment on function duebook.ask_to_send(text, text, text) is
'An old sender asks for a key and takes it in the same act. Returns send, asked_before, duebook, wait or taken.';
