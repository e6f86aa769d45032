-- name: reject_sends
-- The first fault of every row of an old sender's log that can't be taken.
insert into staged_reject (source_no, line_no, column_name, value, reason, expected, raw)
select
    1,
    r.line_no,
    f.column_name,
    f.value,
    f.reason,
    f.expected,
    (jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text[])::text
from raw_row as r
cross join lateral (
    select v.*
    from (
        values
        (1, 'id', r.id, duebook.name_fault(r.id), 'the old sender''s own id of the send'),
        (
            2, 'account_id', r.account_id,
            duebook.name_fault(r.account_id), '1 to 200 printable characters'
        ),
        (
            3, 'operation_key', r.operation_key,
            case
                when
                    r.operation_key is null and (r.kind is null or r.payment_id is null)
                    then 'neither a key nor kind and payment'
                when
                    r.operation_key !~ '^[a-z][a-z0-9_]*:[^:]+:[^:]+:.+$'
                    then 'not an operation key'
            end,
            'an operation key, or kind and payment_id'
        ),
        (
            4, 'sent_at', r.sent_at,
            case
                when r.sent_at is null then 'empty'
                when not duebook.is_time(r.sent_at) then 'not a time'
                when not duebook.has_offset(r.sent_at) then 'without an offset'
            end,
            'an instant with its offset such as 2026-11-30T02:00:00Z'
        )
    ) as v (position, column_name, value, reason, expected)
    where v.reason is not null
    order by v.position
    limit 1
) as f;
