-- name: create_affected_batch
-- Batches that gained, lost or saw changed an entry in this run, or of which the provider spoke.
create temporary table affected_batch (
    batch_ref text primary key
);
