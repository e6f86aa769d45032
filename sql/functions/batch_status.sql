-- Status of a settlement batch in one net currency, from its sums (minor units).
create or replace function duebook.batch_status(
    p_difference_minor bigint,
    p_has_payout boolean,
    p_is_itemisable boolean,
    p_is_complete boolean
) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case
            when not p_is_itemisable then 'not_itemisable'
            when p_difference_minor = 0 and p_has_payout then 'closed'
            when p_difference_minor = 0 then 'carried'
            when not p_is_complete then 'open'
            else 'not_closed'
        end;
$$;
comment on function duebook.batch_status(bigint, boolean, boolean, boolean) is
'Status of a settlement batch in one net currency: closed, carried, open, not_closed, not_itemisable.';
