-- name: fetch_ledger
-- What a dataframe matches the entries with: the booked payments.
copy (
    select
        p.reference as payment_ref,
        p.amount_minor,
        p.currency as booked_currency
    from duebook.ledger_payment as p
    where p.provider_account = 'bench' and not p.is_void
) to stdout (format csv, header true);
