-- name: build_csv_bodies
-- What of a mapped CSV row is kept as its body: its mapped columns, and no other.
update applied_entry as a
set
    body = jsonb_strip_nulls(
        jsonb_build_object(
            'type', r.type,
            'status', r.status,
            'gross', r.gross,
            'debit', r.debit,
            'credit', r.credit,
            'fee', r.fee,
            'net', r.net,
            'occurred_at', r.occurred_at,
            'occurred_time', r.occurred_time,
            'occurred_zone', r.occurred_zone,
            'updated_at', r.updated_at
        )
    )
from raw_row as r
where (a.source_no, a.line_no) = (r.source_no, r.line_no);
