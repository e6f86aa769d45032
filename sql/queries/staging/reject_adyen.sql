-- name: reject_adyen
-- The first fault of every row that can't be an entry: the slow way, taken when the fast one met
-- anything odd. It refuses exactly what the fast way marks suspect or fails on.
insert into staged_reject (source_no, line_no, column_name, value, reason, expected, raw)
select
    r.source_no,
    r.line_no,
    f.column_name,
    f.value,
    f.reason,
    f.expected,
    (jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text[])::text
from suspect_row as q
inner join raw_row as r on q.source_no = r.source_no and q.line_no = r.line_no
left join staged_exponent as g on r.gross_currency = g.currency
left join staged_exponent as n on r.net_currency = n.currency
left join staged_zone as z on r.timezone = z.abbreviation
left join staged_zone as b on r.booking_zone = b.abbreviation
cross join lateral (
    select v.*
    from (
        values
        (
            1, 'Type', r.type,
            case when r.type is null then 'empty' end,
            'a record type such as Settled'
        ),
        (
            2, 'Batch Number', r.batch_number,
            case
                when r.batch_number !~ '^[0-9]{1,18}$' or r.batch_number is null then 'not a number'
            end,
            'the number of the batch'
        ),
        (
            3, 'Psp Reference', r.psp_reference,
            case
                when r.psp_reference like '%E+%' then 'rounded by a spreadsheet'
                when r.psp_reference ~ '[\x01-\x1f\x7f]' then 'control character'
                when char_length(r.psp_reference) > 100 then 'too long'
            end,
            'the reference as Adyen wrote it'
        ),
        (
            4, 'Merchant Reference', r.merchant_reference,
            case
                when r.merchant_reference ~ '[\x01-\x1f\x7f]' then 'control character'
                when char_length(r.merchant_reference) > 200 then 'too long'
            end,
            'at most 200 printable characters'
        ),
        (
            5, 'Modification Reference', r.modification_reference,
            case
                when r.modification_reference ~ '[\x01-\x1f\x7f]' then 'control character'
                when char_length(r.modification_reference) > 80 then 'too long'
            end,
            'at most 80 printable characters'
        ),
        (
            6, 'Modification Merchant Reference', r.modification_merchant_reference,
            case
                when r.modification_merchant_reference ~ '[\x01-\x1f\x7f]' then 'control character'
                when char_length(r.modification_merchant_reference) > 80 then 'too long'
            end,
            'at most 80 printable characters'
        ),
        (
            7, 'Net Currency', r.net_currency,
            case when n.currency is null then 'unknown currency' end,
            'an ISO 4217 code such as EUR'
        ),
        (
            8, 'Gross Currency', r.gross_currency,
            case
                when
                    g.currency is null
                    and r.psp_reference is not null
                    and coalesce(r.gross_credit, r.gross_debit) is not null
                    then 'unknown currency'
            end,
            'an ISO 4217 code such as EUR'
        ),
        (
            9, 'Gross Debit (GC)', r.gross_debit,
            duebook.amount_fault(r.gross_debit, coalesce(g.exponent, 4::smallint)),
            'a decimal amount with a point'
        ),
        (
            10, 'Gross Credit (GC)', r.gross_credit,
            duebook.amount_fault(r.gross_credit, coalesce(g.exponent, 4::smallint)),
            'a decimal amount with a point'
        ),
        (
            11, 'Net Debit (NC)', r.net_debit,
            coalesce(
                duebook.amount_fault(r.net_debit, n.exponent),
                case
                    when
                        r.net_credit is null and r.net_debit is null
                        and lower(r.type) not like '%externally'
                        then 'empty, as is Net Credit (NC)'
                end
            ),
            'a decimal amount with a point'
        ),
        (
            12, 'Net Credit (NC)', r.net_credit,
            duebook.amount_fault(r.net_credit, n.exponent),
            'a decimal amount with a point'
        ),
        (
            13, 'Commission (NC)', r.commission,
            duebook.amount_fault(r.commission, n.exponent),
            'a decimal amount with a point'
        ),
        (
            14, 'Markup (NC)', r.markup,
            duebook.amount_fault(r.markup, n.exponent),
            'a decimal amount with a point'
        ),
        (
            15, 'Scheme Fees (NC)', r.scheme_fees,
            duebook.amount_fault(r.scheme_fees, n.exponent),
            'a decimal amount with a point'
        ),
        (
            16, 'Interchange (NC)', r.interchange,
            duebook.amount_fault(r.interchange, n.exponent),
            'a decimal amount with a point'
        ),
        (
            17, 'Creation Date', r.creation_date,
            case
                when r.creation_date is null then 'empty'
                when r.creation_date ~ '^[0-9]{5}(\.[0-9]+)?$' then 'a spreadsheet''s day number'
                when not duebook.is_local_time(r.creation_date) then 'not a date and time'
            end,
            'a date and time such as 2026-11-30 02:00:00'
        ),
        (
            18, 'TimeZone', r.timezone,
            case when z.zone is null then 'unknown time zone' end,
            'an abbreviation such as CET or PDT'
        ),
        (
            19, 'Booking Date', r.booking_date,
            case
                when r.booking_date is not null and not duebook.is_local_time(r.booking_date)
                    then 'not a date and time'
            end,
            'a date and time such as 2026-11-30 02:00:00'
        ),
        (
            20, 'Booking Date TimeZone', r.booking_zone,
            case
                when r.booking_date is not null and b.zone is null then 'unknown time zone'
            end,
            'an abbreviation such as CET or PDT'
        )
    ) as v (position, column_name, value, reason, expected)
    where v.reason is not null
    order by v.position
    limit 1
) as f;
