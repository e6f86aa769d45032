-- name: create_suspect_row
-- Rows that are to be examined one by one: those that looked odd, or all of them.
create temporary table suspect_row (
    source_no integer not null,
    line_no bigint not null
);
