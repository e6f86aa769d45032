-- name: put_staged_dialect
-- Enters how the files of this run write numbers and dates; arrival is the database's clock.
insert into staged_dialect (
    decimal_point, thousands, date_order, fee_factor, amount_factor, debit_words, is_minor,
    currency_code, has_zone_column, zone, arrival_order
)
select
    :decimal_point::text,
    :thousands::text,
    :date_order::text,
    :fee_factor::integer,
    :amount_factor::integer,
    :debit_words::text[],
    :is_minor::boolean,
    :currency_code::text,
    :has_zone_column::boolean,
    :zone::text,
    (extract(epoch from clock_timestamp()) * 1000000)::bigint;
