-- name: compare_bookings
-- The file against the ledger in one join. What the file has no column for stays as it is.
insert into changed_booking
select
    b.account_id,
    b.payment_id,
    b.reference,
    b.amount_minor,
    b.currency,
    b.booked_status,
    b.expected_at,
    case
        when :has_provider_account::boolean then b.provider_account
        else coalesce(b.provider_account, p.provider_account)
    end as provider_account,
    coalesce(b.is_void, case when not :has_void::boolean then p.is_void end, false) as is_void,
    p.payment_id is null as is_new,
    p.reference as old_reference,
    case
        when :has_group_reference::boolean then b.group_reference else p.group_reference
    end as group_reference,
    p.group_reference as old_group_reference
from staged_booking as b
left join duebook.ledger_payment as p
    on b.account_id = p.account_id and b.payment_id = p.payment_id
where
    p.payment_id is null
    or (
        b.reference,
        b.amount_minor,
        b.currency,
        b.booked_status,
        b.expected_at,
        case
            when :has_provider_account::boolean then b.provider_account
            else coalesce(b.provider_account, p.provider_account)
        end,
        coalesce(b.is_void, case when not :has_void::boolean then p.is_void end, false),
        case
            when :has_group_reference::boolean then b.group_reference else p.group_reference
        end
    )
    is distinct from
    (
        p.reference,
        p.amount_minor,
        p.currency,
        p.booked_status,
        p.expected_at,
        p.provider_account,
        p.is_void,
        p.group_reference
    );
