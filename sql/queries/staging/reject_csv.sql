-- name: reject_csv
-- The first fault of every row of a mapped CSV that can't be an entry: the slow way, taken when the
-- fast one met anything odd. :columns names the file's column of each field.
insert into staged_reject (source_no, line_no, column_name, value, reason, expected, raw)
select
    w.source_no,
    w.line_no,
    coalesce(:columns::jsonb ->> f.field, f.field),
    f.value,
    f.reason,
    f.expected,
    (jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text[])::text
from suspect_row as q
inner join csv_row as w on q.source_no = w.source_no and q.line_no = w.line_no
inner join raw_row as r on q.source_no = r.source_no and q.line_no = r.line_no
left join staged_status as u on lower(w.status) = u.provider_status
left join lateral (
    select
        x.currency,
        case when w.is_minor then 0::smallint else x.exponent end as exponent
    from staged_exponent as x
    where w.currency = x.currency
) as g on true
left join lateral (
    select
        x.currency,
        case when w.is_minor then 0::smallint else x.exponent end as exponent
    from staged_exponent as x
    where w.net_currency = x.currency
) as n on true
left join staged_zone as z on w.zone_name = z.abbreviation
cross join lateral (
    select v.*
    from (
        values
        (
            1, 'entry_id_1', w.entry_id_1,
            case
                when w.entry_id_1 is null then 'empty'
                when concat(w.entry_id_1, w.entry_id_2, w.entry_id_3) ~ '[\x01-\x1f\x7f]'
                    then 'control character'
                when char_length(concat_ws(':', w.entry_id_1, w.entry_id_2, w.entry_id_3)) > 200
                    then 'too long'
            end,
            'the provider''s id of the row'
        ),
        (
            2, 'status', w.status,
            case when w.status is not null and u.entry_status is null then 'unknown status' end,
            'a status that [provider_accounts.….statuses] maps'
        ),
        (
            3, 'currency', w.currency,
            case when g.currency is null then 'unknown currency' end,
            'an ISO 4217 code such as EUR'
        ),
        (
            4, 'net_currency', w.net_currency,
            case when n.currency is null then 'unknown currency' end,
            'an ISO 4217 code such as EUR'
        ),
        (
            5, 'gross', w.gross,
            coalesce(
                duebook.amount_fault(w.gross, g.exponent),
                case when coalesce(w.gross, w.credit, w.debit) is null then 'empty' end
            ),
            'a decimal amount'
        ),
        (
            6, 'debit', w.debit,
            duebook.amount_fault(w.debit, g.exponent),
            'a decimal amount'
        ),
        (
            7, 'credit', w.credit,
            duebook.amount_fault(w.credit, g.exponent),
            'a decimal amount'
        ),
        (
            8, 'fee', w.fee,
            duebook.amount_fault(w.fee, n.exponent),
            'a decimal amount'
        ),
        (
            9, 'net', w.net,
            coalesce(
                duebook.amount_fault(w.net, n.exponent),
                case
                    when w.net is null and w.currency <> w.net_currency
                        then 'empty although its currency is another'
                end
            ),
            'a decimal amount'
        ),
        (
            10, 'occurred_at', w.occurred,
            case when not duebook.is_time(w.occurred) then 'not a date and time' end,
            'a date and time in the order that the account''s columns state'
        ),
        (
            11, 'updated_at', w.updated,
            case
                when w.updated is not null and not duebook.is_time(w.updated)
                    then 'not a date and time'
            end,
            'a date and time in the order that the account''s columns state'
        ),
        (
            12, 'occurred_zone', w.zone_name,
            case when z.zone is null then 'unknown time zone' end,
            'an IANA name or an abbreviation such as CET'
        ),
        (
            13, 'payment_ref', w.payment_ref,
            case
                when concat(w.payment_ref, w.batch_ref, w.provider_payment_ref) ~ '[\x01-\x1f\x7f]'
                    then 'control character'
                when char_length(w.payment_ref) > 200 then 'too long'
            end,
            'at most 200 printable characters'
        )
    ) as v (position, field, value, reason, expected)
    where v.reason is not null and u.entry_status is distinct from 'ignored'
    order by v.position
    limit 1
) as f;
