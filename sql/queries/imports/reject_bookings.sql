-- name: reject_bookings
-- The first fault of every row of a ledger file that can't be booked.
insert into staged_reject (source_no, line_no, column_name, value, reason, expected, raw)
select
    1,
    w.line_no,
    f.column_name,
    f.value,
    f.reason,
    f.expected,
    (jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text[])::text
from suspect_row as q
inner join booking_row as w on q.line_no = w.line_no
inner join raw_row as r on q.line_no = r.line_no
cross join lateral (
    select v.*
    from (
        values
        (
            1, 'account_id', w.account_id,
            duebook.name_fault(w.account_id), '1 to 200 printable characters'
        ),
        (
            2, 'payment_id', w.payment_id,
            duebook.name_fault(w.payment_id), '1 to 200 printable characters'
        ),
        (
            3, 'reference', w.reference,
            duebook.name_fault(w.reference), '1 to 200 printable characters'
        ),
        (
            4, 'currency', w.currency,
            case
                when w.currency is null then 'empty'
                when w.factor is null then 'unknown currency'
            end,
            'an ISO 4217 code such as EUR'
        ),
        (
            5, 'amount_minor', w.amount_minor,
            case
                when w.amount_minor is null and w.amount is null then 'empty'
                when w.amount_minor !~ '^-?[0-9]{1,18}$' then 'not a whole number'
            end,
            'whole minor units'
        ),
        (
            6, 'amount', w.amount,
            coalesce(
                duebook.amount_fault(w.amount, w.exponent),
                case
                    when w.amount_minor !~ '^-?[0-9]{1,18}$' then null
                    when w.amount::numeric * w.factor <> w.amount_minor::numeric
                        then 'not what amount_minor says'
                end
            ),
            'a decimal amount with a point and no more decimals than the currency has'
        ),
        (
            7, 'status', w.booked_status,
            case
                when w.booked_status is null then 'empty'
                when w.booked_status !~ '^[a-z][a-z0-9_]{0,62}$' then 'not a word'
            end,
            'a lower-case word such as paid'
        ),
        (
            8, 'expected_at', w.expected_at,
            case
                when w.expected_at is null then 'empty'
                when not duebook.is_time(w.expected_at) then 'not a date or an instant'
            end,
            'an ISO 8601 date or instant such as 2026-11-30T02:00:00Z'
        ),
        (
            9, 'provider_account', w.stated_account,
            case when not w.is_account_known then 'unknown provider account' end,
            'a provider account of duebook.toml, or nothing'
        ),
        (
            10, 'void', w.void,
            case
                when
                    w.void not in (
                        'true', 't', '1', 'yes', 'y', 'void', 'false', 'f', '0', 'no', 'n'
                    )
                    then 'neither true nor false'
            end,
            'true or false'
        ),
        (
            11, 'group_reference', w.group_reference,
            case
                when w.group_reference is not null then duebook.name_fault(w.group_reference)
            end,
            '1 to 200 printable characters, or nothing'
        )
    ) as v (position, column_name, value, reason, expected)
    where v.reason is not null
    order by v.position
    limit 1
) as f;
