-- name: create_adyen_identity
-- Of every raw row: its identity as in stage_adyen (null: a row of the account), and a fingerprint
-- of the text that stage_adyen reads.
create temporary view raw_identity as
select
    r.source_no,
    r.line_no,
    case
        when r.psp_reference is not null
            then concat(r.psp_reference, ':', lower(r.type), ':', r.modification_reference)
    end as entry_id,
    hash_record_extended(
        row(
            r.type,
            r.psp_reference,
            r.merchant_reference,
            r.modification_reference,
            r.modification_merchant_reference,
            r.gross_currency,
            r.gross_debit,
            r.gross_credit,
            r.net_currency,
            r.net_debit,
            r.net_credit,
            r.commission,
            r.markup,
            r.scheme_fees,
            r.interchange,
            r.creation_date,
            r.timezone,
            r.booking_date,
            r.booking_zone,
            r.batch_number
        ),
        k.salt
    ) as source_hash
from raw_row as r
cross join staged_salt as k;
