-- name: settle_run_holds
-- Holds whose payment this run settled: confirmed, re-held or refunded in the run's transaction.
select
    s.settled,
    s.refunds
from duebook.settle_run_holds(:run_id::bigint, :mode::text, 'reconcile') as s;
