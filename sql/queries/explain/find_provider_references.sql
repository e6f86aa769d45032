-- name: find_provider_references
-- Entries by the provider's own id of a payment (a PSP reference, a charge id). It has no index,
-- since nothing but this question asks for it: read only when nothing else was found.
select distinct
    'entry' as match_kind,
    e.account_id,
    e.payment_id,
    e.provider_account,
    case when e.account_id is null then e.entry_id end as entry_id,
    null::bigint as run_id
from duebook.settlement_entry as e
where e.provider_payment_ref = :subject or e.payment_ref = :subject
order by e.account_id, e.payment_id, entry_id
limit :row_limit::bigint;
