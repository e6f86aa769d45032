-- Ends the waiting promise of a hold's expiry, since the hold has ended otherwise. What a sweep has
-- claimed is left to it: it locks the hold, sees how it ended, and says the same.
create or replace function duebook.end_hold_expiry(
    p_hold duebook.hold,
    p_reason text,
    p_why text,
    p_by text
) returns void
language plpgsql
set search_path = ''
as $$
declare
    v_intent_id bigint;
begin
    select i.intent_id into v_intent_id
    from duebook.intent as i
    where
        i.account_id = p_hold.account_id
        and i.operation_key = duebook.hold_expiry_key(p_hold.hold, p_hold.expires_at);
    perform duebook.end_waiting_intents(
        array[p_hold.account_id], array[v_intent_id], 'cancel', p_reason, p_why, p_by
    );
end;
$$;
comment on function duebook.end_hold_expiry(duebook.hold, text, text, text) is
'Ends the waiting promise of a hold''s expiry; one that a sweep has claimed is ended by it.';
