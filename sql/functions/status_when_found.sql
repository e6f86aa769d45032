-- Status of a discrepancy that a run finds: what was ignored or written off stays so while its
-- amounts are those that were decided on; what was resolved, and is still there, is open again.
create or replace function duebook.status_when_found(
    p_before duebook.discrepancy,
    p_provider_minor bigint,
    p_ledger_minor bigint,
    p_currency char(3)
) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case
            when (p_before).status = 'acknowledged' then 'acknowledged'
            when
                (p_before).status in ('ignored', 'written_off')
                and (p_before).decided_provider_minor is not distinct from p_provider_minor
                and (p_before).decided_ledger_minor is not distinct from p_ledger_minor
                and (p_before).decided_currency is not distinct from p_currency
                then (p_before).status
            else 'open'
        end;
$$;
comment on function duebook.status_when_found(duebook.discrepancy, bigint, bigint, char) is
'Status of a discrepancy that a run finds, from the row before and the amounts that it finds now.';
