-- name: claim_forced_entries
-- Entries that a person matched with a payment, or took that back, since the last run.
insert into claim (
    entry_id, payment_ref, provider_payment_ref, occurred_at, is_applied, old_account_id,
    old_payment_id
)
select
    e.entry_id,
    e.payment_ref,
    e.provider_payment_ref,
    e.occurred_at,
    false,
    e.account_id,
    e.payment_id
from duebook.forced_match as f
inner join duebook.settlement_entry as e
    on e.provider_account = :provider_account and f.entry_id = e.entry_id
where
    f.provider_account = :provider_account
    and f.applied_run_id is null
    and not exists (select from claim as c where c.entry_id = e.entry_id)
    and not exists (
        select from applied_entry as a
        where a.entry_id = e.entry_id and a.change in ('new', 'changed')
    );
