-- name: find_gone_discrepancies
-- What is gone, inside the scope of this run only: payments when it is a full run or they are
-- affected, entries that it looked up, batches that it summed.
insert into gone_discrepancy (kind, subject)
select
    d.kind,
    d.subject
from duebook.discrepancy as d
where
    d.provider_account = :provider_account
    and d.closed_at is null
    and case
        when d.kind in ('missing_in_ledger', 'duplicate_reference')
            then exists (select from claim as c where c.entry_id = d.entry_id)
        when d.kind = 'unexplained_remainder'
            then exists (select from affected_batch as b where b.batch_ref = d.batch_ref)
        else
            :is_full::boolean
            or exists (
                select from affected_payment as a
                where a.account_id = d.account_id and a.payment_id = d.payment_id
            )
    end
    and not exists (
        select from finding as f
        where f.kind = d.kind and f.subject = d.subject
    );
