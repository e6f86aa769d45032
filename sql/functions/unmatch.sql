-- Takes a match by hand back, in the caller's transaction: the next run of the provider account
-- matches the entry by its reference again. Raises no_data_found where there is none.
create or replace function duebook.unmatch(
    p_provider_account text,
    p_entry_id text,
    p_by text,
    p_reason text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_account_id text;
begin
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by) using errcode = 'check_violation';
    end if;
    if coalesce(pg_catalog.btrim(p_reason), '') = '' then
        raise exception 'reason: empty; expected why they do not belong together'
            using errcode = 'check_violation';
    end if;
    update duebook.forced_match as f
    set
        is_active = false,
        forced_by = p_by,
        reason = pg_catalog.btrim(p_reason),
        forced_at = pg_catalog.clock_timestamp(),
        applied_run_id = null
    where f.provider_account = p_provider_account and f.entry_id = p_entry_id and f.is_active
    returning f.account_id into v_account_id;
    if not found then
        raise exception 'entry % at % was not matched by hand', p_entry_id, p_provider_account
            using errcode = 'no_data_found';
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'unmatch', v_account_id, 'entry:' || p_entry_id,
        pg_catalog.jsonb_build_object('provider_account', p_provider_account, 'reason', pg_catalog.btrim(p_reason))
    );
    return 'unmatched';
end;
$$;
comment on function duebook.unmatch(text, text, text, text) is
'Takes a match by hand back; the next run matches the entry by its reference again. Returns unmatched.';
