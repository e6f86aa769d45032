-- name: create_candidate_row
-- Raw rows that are read at all.
create temporary table candidate_row (
    source_no integer not null,
    line_no bigint not null,
    source_hash bigint not null
);
