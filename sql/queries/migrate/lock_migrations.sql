-- name: lock_migrations
-- One migrate at a time per database; held until the transaction ends.
select pg_advisory_xact_lock(hashtext('duebook.migrate'), 0);
