-- Confirms a hold, or says why not; with a payment that came too late it is held again or the
-- payment is to be refunded, never both. The one place where that is decided, whoever calls.
--
-- The clock is read once the hold is locked, so that an unswept hold is expired here as it is to
-- every reader. A hold that was made for the same payment after this one had expired took its
-- place: the payment is its own. p_change is the ledger change that told of the payment, if one.
create or replace function duebook.settle_hold(
    p_account_id text,
    p_hold text,
    p_payment_id text,
    p_ownership text,
    p_change duebook.ledger_change,
    p_by text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_resource duebook.hold_resource;
    v_hold duebook.hold;
    v_now timestamptz;
    v_state text;
    v_answer text;
    v_is_told boolean;
begin
    -- What it reserves never changes; resources are locked before holds.
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold;
    if not found then
        raise exception 'there is no hold % of this account', p_hold
            using errcode = 'no_data_found';
    end if;
    if v_hold.resource is not null then
        v_resource := duebook.lock_hold_resource(v_hold.resource);
    end if;
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold
    for update;
    v_now := pg_catalog.clock_timestamp();
    if p_payment_id <> v_hold.payment_id then
        raise exception 'hold % is for another payment', p_hold
            using errcode = 'unique_violation', column = 'payment_id';
    end if;

    v_state := duebook.hold_state(v_hold, v_now);
    v_answer := case
        when v_state = 'open' then 'confirmed'
        when v_state = 'confirmed' then 'already_confirmed'
        when v_state = 'refunded' then 'refund'
        when v_state <> 'expired' or p_payment_id is null then v_state
        when exists (
            select
            from duebook.hold as o
            where
                o.account_id = p_account_id
                and o.payment_id = p_payment_id
                and o.created_at >= v_hold.expires_at
                and o.cancelled_at is null
        ) then v_state
        when duebook.has_room(v_resource, v_hold.quantity, v_now) then 'reheld'
        else 'refund'
    end;
    if v_state = 'confirmed' and v_hold.payment_id is null and p_payment_id is not null then
        -- Confirmed before it was paid: from now on it is this payment's, and no other's.
        update duebook.hold as h
        set payment_id = p_payment_id
        where h.account_id = p_account_id and h.hold = p_hold;
    end if;
    if v_state not in ('open', 'expired') or v_answer = 'expired' then
        return v_answer;
    end if;

    update duebook.hold as h
    set
        payment_id = coalesce(h.payment_id, p_payment_id),
        confirmed_at = case when v_answer <> 'refund' then v_now end,
        reheld_at = case when v_answer = 'reheld' then v_now end,
        refunded_at = case when v_answer = 'refund' then v_now end
    where h.account_id = p_account_id and h.hold = p_hold;
    if v_answer = 'refund' then
        v_is_told := duebook.promise_hold_refund(v_hold, p_payment_id, p_ownership, p_change);
    else
        update duebook.hold_resource as r
        set confirmed = r.confirmed + v_hold.quantity
        where r.resource = v_hold.resource;
        perform duebook.end_hold_expiry(v_hold, 'settled_meanwhile', 'confirmed', p_by);
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'confirm_hold', p_account_id,
        duebook.hold_expiry_key(v_hold.hold, v_hold.expires_at),
        pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'answer', v_answer, 'payment_id', p_payment_id, 'run_id', p_change.run_id,
                'is_told', v_is_told
            )
        )
    );
    return v_answer;
end;
$$;
comment on function duebook.settle_hold(
    text, text, text, text, duebook.ledger_change, text
) is 'Confirms a hold or says why not; a payment that came too late re-holds it or is to be refunded.';
