-- Confirms a hold in the caller's transaction. Returns
-- confirmed          it was open, and is taken now
-- already_confirmed  it was confirmed before
-- expired            too late, and no payment was given (or a newer hold has that payment)
-- cancelled          it was cancelled before
-- reheld             too late, but the payment got it again, since there was room
-- refund             too late and no room: the payment is to be refunded, and the account is told
-- The same call again has the same effect once and gives the same answer (already_confirmed for
-- confirmed). Raises no_data_found for a hold that is not known, unique_violation for one that is
-- another payment's.
create or replace function duebook.confirm_hold(
    p_account_id text,
    p_hold text,
    p_payment_id text default null,
    p_by text default session_user
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_fault text := duebook.name_fault(nullif(p_payment_id, ''));
begin
    if p_payment_id is not null and v_fault is not null then
        raise exception 'payment_id: %', v_fault
            using errcode = 'invalid_parameter_value', column = 'payment_id';
    end if;
    return duebook.settle_hold(p_account_id, p_hold, p_payment_id, 'live', null, p_by);
end;
$$;
comment on function duebook.confirm_hold(text, text, text, text) is
'Confirms a hold. Returns confirmed, already_confirmed, expired, cancelled, reheld or refund.';
