-- name: start_run
-- The clock and the horizon of imports of a run that holds its account: whatever committed before
-- this statement is seen by the next ones, and what has a transaction from seen_xid on may not be.
select
    clock_timestamp() as as_of,
    nextval(pg_get_serial_sequence('duebook.reconciliation_run', 'run_id')) as run_id,
    pg_snapshot_xmin(pg_current_snapshot())::text as seen_xid;
