-- name: create_csv_body
-- What of a mapped CSV row is kept as its body: its mapped columns, and no other.
create temporary view entry_body as
select
    r.source_no,
    r.line_no,
    jsonb_strip_nulls(
        jsonb_build_object(
            'type', r.type,
            'status', r.status,
            'gross', r.gross,
            'debit', r.debit,
            'credit', r.credit,
            'direction', r.direction,
            'fee', r.fee,
            'net', r.net,
            'occurred_at', r.occurred_at,
            'occurred_time', r.occurred_time,
            'occurred_zone', r.occurred_zone,
            'updated_at', r.updated_at
        )
    ) as body
from raw_row as r;
