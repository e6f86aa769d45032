-- name: delete_batches
-- Batches that no entry stands in any more.
delete from duebook.settlement_batch as b
using affected_batch as a
where
    b.provider_account = :provider_account
    and b.batch_ref = a.batch_ref
    and not exists (
        select from duebook.settlement_entry as e
        where
            e.provider_account = b.provider_account
            and e.batch_ref = b.batch_ref
            and e.net_currency = b.currency
            and e.entry_status <> 'withdrawn'
    );
