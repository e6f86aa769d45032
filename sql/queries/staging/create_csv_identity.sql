-- name: create_csv_identity
-- Of every raw row whose status is not ignored: its identity as in stage_csv, and a fingerprint of
-- the text that stage_csv reads.
create temporary view raw_identity as
select
    r.source_no,
    r.line_no,
    concat_ws(':', r.entry_id_1, r.entry_id_2, r.entry_id_3) as entry_id,
    hash_record_extended(
        row(
            r.entry_id_1,
            r.entry_id_2,
            r.entry_id_3,
            r.type,
            r.gross,
            r.debit,
            r.credit,
            r.direction,
            r.fee,
            r.net,
            r.currency,
            r.net_currency,
            r.payment_ref,
            r.provider_payment_ref,
            r.batch_ref,
            r.occurred_at,
            r.occurred_time,
            r.occurred_zone,
            r.updated_at,
            r.status
        ),
        k.salt
    ) as source_hash
from raw_row as r
cross join staged_salt as k
where
    not exists (
        select from staged_status as u
        where u.entry_status = 'ignored' and lower(r.status) = u.provider_status
    );
