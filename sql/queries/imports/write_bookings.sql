-- name: write_bookings
-- Writes what is new or differs, in key order, as runs lock it.
insert into duebook.ledger_payment as p (
    account_id, payment_id, reference, amount_minor, currency, booked_status, expected_at,
    provider_account, is_void, group_reference
)
select
    c.account_id,
    c.payment_id,
    c.reference,
    c.amount_minor,
    c.currency,
    c.booked_status,
    c.expected_at,
    c.provider_account,
    c.is_void,
    c.group_reference
from changed_booking as c
order by c.account_id, c.payment_id
on conflict (account_id, payment_id) do update
    set
        reference = excluded.reference,
        amount_minor = excluded.amount_minor,
        currency = excluded.currency,
        booked_status = excluded.booked_status,
        expected_at = excluded.expected_at,
        provider_account = excluded.provider_account,
        is_void = excluded.is_void,
        group_reference = excluded.group_reference,
        booked_version = p.booked_version + 1,
        imported_at = clock_timestamp(),
        imported_xid = pg_current_xact_id();
