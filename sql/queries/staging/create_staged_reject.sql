-- name: create_staged_reject
-- Rows that can't be read: where, what and why.
create temporary table staged_reject (
    source_no integer not null,
    line_no bigint not null,
    column_name text,
    value text,
    reason text not null,
    expected text not null,
    raw text
);
