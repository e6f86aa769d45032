-- name: create_staged_dialect
-- How the files of this run write numbers and dates: one row.
create temporary table staged_dialect (
    decimal_point text not null,
    thousands text not null,
    date_order text not null,
    fee_factor integer not null,
    amount_factor integer not null,
    debit_words text[] not null,
    is_minor boolean not null,
    currency_code text,
    has_zone_column boolean not null,
    zone text not null,
    arrival_order bigint not null
);
