-- name: write_allocations
-- The shares that count from now on.
insert into duebook.entry_allocation (
    provider_account, entry_id, account_id, payment_id, gross_minor, fee_minor, net_minor, run_id
)
select
    :provider_account,
    n.entry_id,
    n.account_id,
    n.payment_id,
    n.gross_minor,
    n.fee_minor,
    n.net_minor,
    :run_id
from allocation_new as n
where not n.is_gone;
