-- Cancels a hold in the caller's transaction: its quantity is free at once, and a payment that
-- comes later neither re-holds it nor is refunded for it. Returns cancelled (also for one that had
-- expired), already_cancelled, or confirmed or refund for one that a payment had ended: that stays.
-- Raises no_data_found for a hold that is not known.
create or replace function duebook.cancel_hold(
    p_account_id text,
    p_hold text,
    p_reason text default 'cancelled',
    p_by text default session_user
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_hold duebook.hold;
    v_now timestamptz;
    v_state text;
begin
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold
    for update;
    if not found then
        raise exception 'there is no hold % of this account', p_hold
            using errcode = 'no_data_found';
    end if;
    v_now := pg_catalog.clock_timestamp();
    v_state := duebook.hold_state(v_hold, v_now);
    if v_state not in ('open', 'expired') then
        return case v_state
            when 'cancelled' then 'already_cancelled'
            when 'refunded' then 'refund'
            else 'confirmed'
        end;
    end if;

    update duebook.hold as h
    set cancelled_at = v_now
    where h.account_id = p_account_id and h.hold = p_hold;
    if v_state = 'open' then
        -- One that had expired already ends as expired by the sweep.
        perform duebook.end_hold_expiry(v_hold, 'cancelled', p_reason, p_by);
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'cancel_hold', p_account_id,
        duebook.hold_expiry_key(v_hold.hold, v_hold.expires_at),
        pg_catalog.jsonb_build_object('reason', p_reason, 'was', v_state)
    );
    return 'cancelled';
end;
$$;
comment on function duebook.cancel_hold(text, text, text, text) is
'Cancels a hold. Returns cancelled, already_cancelled, confirmed or refund.';
