-- name: list_run_batches
-- Batches that a run speaks of: those it summed, those of the files it was given, and every one
-- that does not close.
select
    b.batch_ref,
    b.currency,
    b.sum_minor,
    b.payout_minor,
    b.difference_minor,
    b.status
from duebook.settlement_batch as b
where
    b.provider_account = :provider_account
    and (
        b.status in ('open', 'not_closed')
        or b.batch_ref in (select a.batch_ref from affected_batch as a)
        or b.batch_ref in (select e.batch_ref from staged_entry as e)
        or b.run_id in (
            select f.run_id from duebook.settlement_file as f
            where f.provider_account = :provider_account and f.sha256 = any(:checksums::text[])
        )
    )
order by b.batch_ref, b.currency;
