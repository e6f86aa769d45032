-- name: create_gone_discrepancy
-- Discrepancies that stood before this run and that it no longer sees.
create temporary table gone_discrepancy (
    kind text not null,
    subject text not null
);
