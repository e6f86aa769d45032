-- name: list_run_holds
-- Whether any hold waits for a payment that this run settled: nearly always none does.
select
    h.account_id,
    h.hold
from duebook.find_run_holds(:run_id::bigint) as h
limit 1;
