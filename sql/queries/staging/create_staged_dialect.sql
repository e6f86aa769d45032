-- name: create_staged_dialect
-- How the files of this run write numbers and dates: one row.
create temporary table staged_dialect (
    decimal_point text not null,
    thousands text not null,
    date_order text not null,
    fee_factor integer not null,
    has_zone_column boolean not null,
    zone text not null,
    arrival_order bigint not null
);
