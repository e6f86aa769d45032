-- name: create_csv_row
-- Raw rows of a mapped CSV with numbers and dates in the usual form; both ways of reading use it.
-- What is written in that form already is taken as it is: a call a value costs 5 s a million rows.
create temporary view csv_row as
select
    r.source_no,
    r.line_no,
    r.entry_id_1,
    r.entry_id_2,
    r.entry_id_3,
    r.type,
    r.status,
    r.batch_ref,
    r.payment_ref,
    r.provider_payment_ref,
    upper(coalesce(r.currency, d.currency_code)) as currency,
    upper(coalesce(r.net_currency, r.currency, d.currency_code)) as net_currency,
    case
        when r.direction is not null
            then
                concat(
                    case when lower(r.direction) = any(d.debit_words) then '-' end,
                    ltrim(duebook.plain_number(r.gross, d.decimal_point, d.thousands), '+-')
                )
        when d.has_plain_numbers then r.gross
        else duebook.plain_number(r.gross, d.decimal_point, d.thousands)
    end as gross,
    case
        when d.has_plain_numbers then r.credit
        else duebook.plain_number(r.credit, d.decimal_point, d.thousands)
    end as credit,
    case
        when d.has_plain_numbers then r.debit
        else duebook.plain_number(r.debit, d.decimal_point, d.thousands)
    end as debit,
    case
        when d.has_plain_numbers then r.fee
        else duebook.plain_number(r.fee, d.decimal_point, d.thousands)
    end as fee,
    case
        when d.has_plain_numbers then r.net
        else duebook.plain_number(r.net, d.decimal_point, d.thousands)
    end as net,
    case
        when d.date_order = 'iso' then r.occurred_at
        else duebook.plain_date(r.occurred_at, d.date_order)
    end
    || coalesce(' ' || r.occurred_time, '') as occurred,
    case
        when d.date_order = 'iso' then r.updated_at
        else duebook.plain_date(r.updated_at, d.date_order)
    end as updated,
    case when d.has_zone_column then r.occurred_zone else d.zone end as zone_name,
    d.fee_factor,
    d.amount_factor,
    d.is_minor,
    d.arrival_order
from raw_row as r
cross join (
    select
        e.*,
        e.decimal_point = '.' and e.thousands = '' as has_plain_numbers
    from staged_dialect as e
) as d;
