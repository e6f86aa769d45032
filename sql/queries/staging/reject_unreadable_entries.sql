-- name: reject_unreadable_entries
-- The last guard: a suspect row that no check named and that still is no whole entry.
with unreadable as (
    delete from staged_entry as e
    where
        e.is_suspect
        and num_nulls(
            e.entry_id, e.entry_type, e.provider_type, e.gross_minor, e.fee_minor, e.net_minor,
            e.currency, e.net_currency, e.entry_status, e.occurred_at, e.source_order
        ) > 0
    returning e.source_no, e.line_no
)

insert into staged_reject (source_no, line_no, reason, expected)
select
    u.source_no,
    u.line_no,
    'can''t be read as a whole',
    'a row whose columns are all in their usual form'
from unreadable as u;
