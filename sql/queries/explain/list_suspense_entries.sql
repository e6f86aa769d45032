-- name: list_suspense_entries
-- Every version of entries that no booked payment claims: those named, or those with a reference.
select
    e.account_id,
    e.payment_id,
    v.provider_account,
    a.provider,
    v.entry_id,
    v.version,
    v.version = e.version as is_current,
    v.is_current_when_stored,
    v.entry_type,
    v.provider_type,
    v.batch_ref,
    v.payment_ref,
    v.gross_minor,
    v.fee_minor,
    v.net_minor,
    v.currency,
    v.net_currency,
    v.entry_status,
    v.occurred_at,
    v.available_at,
    v.source,
    v.line_no,
    v.run_id,
    v.stored_at,
    (
        select count(*) from duebook.ledger_payment as p
        where p.reference = e.payment_ref
    ) as claimants
from duebook.settlement_entry as e
inner join duebook.settlement_entry_version as v using (provider_account, entry_id)
inner join duebook.provider_account as a using (provider_account)
where
    e.account_id is null
    and (
        (e.provider_account = :provider_account and e.entry_id = :entry_id)
        or (e.payment_ref is not null and e.payment_ref = any(:payment_refs::text[]))
    )
order by v.stored_at, v.source_order, v.entry_id, v.version
limit :row_limit::bigint;
