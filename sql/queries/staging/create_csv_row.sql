-- name: create_csv_row
-- Raw rows of a mapped CSV with numbers and dates in the usual form; both ways of reading use it.
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
    r.currency,
    coalesce(r.net_currency, r.currency) as net_currency,
    duebook.plain_number(r.gross, d.decimal_point, d.thousands) as gross,
    duebook.plain_number(r.credit, d.decimal_point, d.thousands) as credit,
    duebook.plain_number(r.debit, d.decimal_point, d.thousands) as debit,
    duebook.plain_number(r.fee, d.decimal_point, d.thousands) as fee,
    duebook.plain_number(r.net, d.decimal_point, d.thousands) as net,
    duebook.plain_date(r.occurred_at, d.date_order)
    || coalesce(' ' || r.occurred_time, '') as occurred,
    duebook.plain_date(r.updated_at, d.date_order) as updated,
    case when d.has_zone_column then r.occurred_zone else d.zone end as zone_name,
    d.fee_factor,
    d.arrival_order
from raw_row as r
cross join staged_dialect as d;
