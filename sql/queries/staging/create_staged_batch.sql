-- name: create_staged_batch
-- What an API said about payouts themselves.
create temporary table staged_batch (
    batch_ref text primary key,
    is_itemisable boolean not null,
    is_complete boolean not null
);
