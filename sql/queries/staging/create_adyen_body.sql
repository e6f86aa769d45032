-- name: create_adyen_body
-- What of an Adyen row is kept as its body: an allow-list, so that nothing personal comes along.
create temporary view entry_body as
select
    r.source_no,
    r.line_no,
    jsonb_strip_nulls(
        jsonb_build_object(
            'company_account', r.company_account,
            'merchant_account', r.merchant_account,
            'payment_method', r.payment_method,
            'payment_method_variant', r.payment_method_variant,
            'creation_date', r.creation_date,
            'timezone', r.timezone,
            'booking_date', r.booking_date,
            'modification_reference', r.modification_reference,
            'modification_merchant_reference', r.modification_merchant_reference,
            'exchange_rate', r.exchange_rate,
            'commission', r.commission,
            'markup', r.markup,
            'scheme_fees', r.scheme_fees,
            'interchange', r.interchange
        )
    ) as body
from raw_row as r;
