-- What a person does with a discrepancy, in the caller's transaction: acknowledge, assign, resolve,
-- ignore, write_off or reopen. Each needs a name, and all but the first two a reason.
--
-- resolve says that the difference will be gone: a run that still finds it opens it again. ignore
-- and write_off keep it so until an amount changes. The same act again changes nothing. Returns
-- the status. Raises no_data_found for one that is not known, check_violation for an act that its
-- status does not allow.
create or replace function duebook.deal_with_discrepancy(
    p_provider_account text,
    p_kind text,
    p_subject text,
    p_act text,
    p_by text,
    p_reason text,
    p_assignee text
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_row duebook.discrepancy;
    v_status text;
begin
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by) using errcode = 'check_violation';
    end if;
    v_status := case p_act
        when 'acknowledge' then 'acknowledged'
        when 'assign' then 'acknowledged'
        when 'resolve' then 'resolved'
        when 'ignore' then 'ignored'
        when 'write_off' then 'written_off'
        when 'reopen' then 'open'
    end;
    if v_status is null then
        raise exception
            'act: %; expected acknowledge, assign, resolve, ignore, write_off or reopen', p_act
            using errcode = 'check_violation';
    end if;
    if p_act = 'assign' and duebook.name_fault(p_assignee) is not null then
        raise exception 'assignee: %', duebook.name_fault(p_assignee)
            using errcode = 'check_violation';
    end if;
    if p_act not in ('acknowledge', 'assign') and coalesce(pg_catalog.btrim(p_reason), '') = '' then
        raise exception 'reason: empty; expected why it is to % it', pg_catalog.replace(p_act, '_', ' ')
            using errcode = 'check_violation';
    end if;

    select d.* into v_row
    from duebook.discrepancy as d
    where
        d.provider_account = p_provider_account
        and d.kind = p_kind
        and d.subject = p_subject
    for update;
    if not found then
        raise exception 'there is no discrepancy % of % at %', p_kind, p_subject, p_provider_account
            using errcode = 'no_data_found';
    end if;
    if v_row.closed_at is not null then
        raise exception 'it is gone since %: nothing is left to %',
            pg_catalog.to_char(v_row.closed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            pg_catalog.replace(p_act, '_', ' ')
            using errcode = 'check_violation';
    end if;
    if p_act = 'assign' and v_row.status not in ('open', 'acknowledged') then
        raise exception 'it is %: reopen it first', pg_catalog.replace(v_row.status, '_', ' ')
            using errcode = 'check_violation';
    end if;
    if p_act = 'acknowledge' and v_row.status not in ('open', 'acknowledged') then
        raise exception 'it is %: reopen it first', pg_catalog.replace(v_row.status, '_', ' ')
            using errcode = 'check_violation';
    end if;
    if
        v_row.status = v_status
        and (p_act <> 'assign' or v_row.assignee is not distinct from p_assignee)
    then
        return v_status;
    end if;

    update duebook.discrepancy as d
    set
        status = v_status,
        assignee = case p_act when 'assign' then p_assignee else d.assignee end,
        decided_provider_minor = d.provider_minor,
        decided_ledger_minor = d.ledger_minor,
        decided_currency = d.currency
    where
        d.provider_account = p_provider_account
        and d.kind = p_kind
        and d.subject = p_subject;
    insert into duebook.discrepancy_event (
        provider_account, kind, subject, act, actor, reason, assignee, status_before, status_after,
        provider_minor, ledger_minor, currency
    )
    values (
        p_provider_account, p_kind, p_subject, p_act, p_by, nullif(pg_catalog.btrim(p_reason), ''),
        case p_act when 'assign' then p_assignee else v_row.assignee end,
        v_row.status, v_status, v_row.provider_minor, v_row.ledger_minor, v_row.currency
    );
    return v_status;
end;
$$;
comment on function duebook.deal_with_discrepancy(text, text, text, text, text, text, text) is
'What a person does with a discrepancy: acknowledge, assign, resolve, ignore, write_off or reopen. Returns its status.';
