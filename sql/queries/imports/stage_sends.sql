-- name: stage_sends
-- Rows of an old sender's log; an id that stands more than once is as its first line says.
insert into staged_send (
    line_no, external_id, account_id, operation_key, kind, channel, payment_id, sent_at
)
select distinct on (r.id)
    r.line_no,
    r.id,
    r.account_id,
    r.operation_key,
    coalesce(lower(r.kind), duebook.key_kind(r.operation_key)),
    coalesce(lower(r.channel), split_part(r.operation_key, ':', 2)),
    r.payment_id,
    r.sent_at::timestamptz
from raw_row as r
order by r.id, r.line_no;
