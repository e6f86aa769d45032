-- name: create_staged_source
-- The files of this run (source 0 is an API): what registers them once they are applied.
create temporary table staged_source (
    source_no integer primary key,
    name text not null,
    sha256 text,
    size_bytes bigint not null default 0,
    row_count bigint not null default 0,
    quarantined_count bigint not null default 0,
    source_order bigint not null default 0,
    file_id bigint,
    known_run_id bigint
);
