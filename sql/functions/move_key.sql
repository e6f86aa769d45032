-- Moves one key by name between the old sender and Duebook. Returns moved, or why not:
--   unknown       no intent of this account has that key
--   ended         it has its outcome
--   already       it is there
--   in_hand       a sender of ours holds it, or it is in doubt
--   sent          the old sender took or sent it
--   never_asks    an old sender is there that does not ask: whether it sends, nobody can tell
-- To Duebook, its proposal becomes due at its time, or now where that has passed, and the key is
-- taken in sender_key; to the old sender, its waiting row becomes a proposal again.
create or replace function duebook.move_key(
    p_account_id text,
    p_operation_key text,
    p_ownership text,
    p_reason text,
    p_by text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_intent duebook.intent;
    v_is_waiting boolean;
begin
    select i.* into v_intent
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key
    for update;
    if not found then
        return 'unknown';
    end if;
    if exists (
        select from duebook.outcome as o
        where o.account_id = p_account_id and o.operation_key = p_operation_key
    ) then
        return 'ended';
    end if;
    if p_ownership = duebook.current_ownership(
        p_account_id, v_intent.intent_id,
        case when v_intent.ownership = 'live' then 'live' else 'shadow' end
    ) then
        return 'already';
    end if;

    if p_ownership = 'live' then
        if exists (select from duebook.old_sender as s where not s.asks) then
            return 'never_asks';
        end if;
        insert into duebook.sender_key (account_id, operation_key, sender)
        values (p_account_id, p_operation_key, 'duebook')
        on conflict do nothing;
        if not found or exists (
            select
            from duebook.observed_send as s
            where
                s.account_id = p_account_id
                and (
                    s.operation_key = p_operation_key
                    or (
                        s.operation_key is null
                        and s.payment_id = v_intent.payment_id
                        and s.kind = v_intent.kind
                    )
                )
        ) then
            delete from duebook.sender_key as k
            where
                k.account_id = p_account_id
                and k.operation_key = p_operation_key
                and k.sender = 'duebook';
            return 'sent';
        end if;
        delete from duebook.proposed as p
        where p.account_id = p_account_id and p.intent_id = v_intent.intent_id;
    else
        -- What may have left us must not leave the other as well.
        if exists (
            select
            from duebook.attempt as a
            left join duebook.attempt_result as r
                on
                    a.account_id = r.account_id
                    and a.intent_id = r.intent_id
                    and a.attempt_no = r.attempt_no
            where
                a.account_id = p_account_id
                and a.intent_id = v_intent.intent_id
                and coalesce(r.result, 'unknown') = 'unknown'
        ) then
            return 'in_hand';
        end if;
        delete from duebook.due as d
        where d.account_id = p_account_id and d.intent_id = v_intent.intent_id;
        v_is_waiting := found;
        delete from duebook.held as h
        where h.account_id = p_account_id and h.intent_id = v_intent.intent_id;
        if not (v_is_waiting or found) then
            return 'in_hand';
        end if;
        delete from duebook.sender_key as k
        where
            k.account_id = p_account_id
            and k.operation_key = p_operation_key
            and k.sender = 'duebook';
    end if;

    insert into duebook.ownership_change (account_id, intent_id, ownership, moved_by, reason)
    values (p_account_id, v_intent.intent_id, p_ownership, p_by, p_reason);
    perform duebook.place_intents(array[p_account_id], array[v_intent.intent_id]);
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'move_key', p_account_id, p_operation_key,
        pg_catalog.jsonb_build_object('to', p_ownership, 'reason', p_reason)
    );
    return 'moved';
end;
$$;
comment on function duebook.move_key(text, text, text, text, text) is
'Moves one key by name between the old sender and Duebook. Returns moved, or why not.';
