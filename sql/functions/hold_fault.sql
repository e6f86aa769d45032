-- The first field that keeps a creation from being a hold, and what is wrong with it; no row: none.
create or replace function duebook.hold_fault(
    p_account_id text,
    p_hold text,
    p_expires_at timestamptz,
    p_for interval,
    p_resource text,
    p_quantity integer,
    p_payment_id text
) returns table (field text, fault text)
language sql
stable
set search_path = ''
as $$
    select
        f.field,
        f.fault
    from (
        values
        (1, 'account_id', duebook.name_fault(nullif(p_account_id, ''))),
        (2, 'hold', duebook.name_fault(nullif(p_hold, ''))),
        (
            3,
            'resource',
            case when p_resource is not null then duebook.name_fault(nullif(p_resource, '')) end
        ),
        (
            4,
            'payment_id',
            case when p_payment_id is not null then duebook.name_fault(nullif(p_payment_id, '')) end
        ),
        (
            5,
            'quantity',
            case when coalesce(p_quantity, 0) < 1 then 'expected a whole number from 1' end
        ),
        (
            6,
            'expires_at',
            case
                when pg_catalog.num_nonnulls(p_expires_at, p_for) <> 1
                    then 'expected either an instant or how long to hold'
                when not pg_catalog.isfinite(p_expires_at) then 'expected an instant'
                when p_expires_at > pg_catalog.clock_timestamp() + interval '100 years'
                    then 'more than 100 years ahead'
            end
        ),
        (
            7,
            'for',
            case
                when p_for <= interval '0' then 'expected more than nothing'
                when p_for > interval '100 years' then 'more than 100 years'
            end
        )
    ) as f (place, field, fault)
    where f.fault is not null
    order by f.place
    limit 1;
$$;
comment on function duebook.hold_fault(
    text, text, timestamptz, interval, text, integer, text
) is 'The first field of a hold that is to be created which is wrong, and why; no row: none.';
