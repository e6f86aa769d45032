-- Matches an entry with a payment whatever its reference says, in the caller's transaction; the
-- next run of the provider account moves the money. The same match again changes nothing. Raises
-- no_data_found for an entry or a payment that is not known, check_violation for a row of the
-- account that no payment can be matched with.
create or replace function duebook.force_match(
    p_provider_account text,
    p_entry_id text,
    p_account_id text,
    p_payment_id text,
    p_by text,
    p_reason text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_type text;
    v_before duebook.forced_match;
begin
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by) using errcode = 'check_violation';
    end if;
    if coalesce(pg_catalog.btrim(p_reason), '') = '' then
        raise exception 'reason: empty; expected why they belong together'
            using errcode = 'check_violation';
    end if;
    select e.entry_type into v_type
    from duebook.settlement_entry as e
    where e.provider_account = p_provider_account and e.entry_id = p_entry_id;
    if not found then
        raise exception 'there is no entry % at %', p_entry_id, p_provider_account
            using errcode = 'no_data_found';
    end if;
    if v_type = 'payout' then
        raise exception 'entry % is a payout: it is of no payment', p_entry_id
            using errcode = 'check_violation';
    end if;
    perform p.payment_id
    from duebook.ledger_payment as p
    where p.account_id = p_account_id and p.payment_id = p_payment_id;
    if not found then
        raise exception 'there is no booked payment % of account %', p_payment_id, p_account_id
            using errcode = 'no_data_found';
    end if;

    select f.* into v_before
    from duebook.forced_match as f
    where f.provider_account = p_provider_account and f.entry_id = p_entry_id
    for update;
    if
        v_before.is_active
        and (v_before.account_id, v_before.payment_id) = (p_account_id, p_payment_id)
    then
        return 'existed';
    end if;
    insert into duebook.forced_match as f (
        provider_account, entry_id, account_id, payment_id, forced_by, reason
    )
    values (p_provider_account, p_entry_id, p_account_id, p_payment_id, p_by, pg_catalog.btrim(p_reason))
    on conflict (provider_account, entry_id) do update
        set
            account_id = excluded.account_id,
            payment_id = excluded.payment_id,
            is_active = true,
            forced_by = excluded.forced_by,
            reason = excluded.reason,
            forced_at = pg_catalog.clock_timestamp(),
            applied_run_id = null;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'force_match', p_account_id, 'entry:' || p_entry_id,
        pg_catalog.jsonb_build_object(
            'provider_account', p_provider_account, 'payment_id', p_payment_id,
            'reason', pg_catalog.btrim(p_reason)
        )
    );
    return 'matched';
end;
$$;
comment on function duebook.force_match(text, text, text, text, text, text) is
'Matches an entry with a payment whatever its reference says; the next run applies it. Returns matched or existed.';
