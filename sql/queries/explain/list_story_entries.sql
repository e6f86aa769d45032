-- name: list_story_entries
-- Every version of every settlement entry that the payments claim, with where it was read.
with claimed as (
    select
        o.provider_account,
        o.entry_id,
        o.account_id,
        o.payment_id
    from duebook.settlement_entry as o
    where o.account_id = :account_id and o.payment_id = any(:payment_ids::text[])
    union all
    select
        s.provider_account,
        s.entry_id,
        s.account_id,
        s.payment_id
    from duebook.entry_allocation as s
    where s.account_id = :account_id and s.payment_id = any(:payment_ids::text[])
)

select
    c.account_id,
    c.payment_id,
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
    v.stored_at
from claimed as c
inner join duebook.settlement_entry as e using (provider_account, entry_id)
inner join duebook.settlement_entry_version as v using (provider_account, entry_id)
inner join duebook.provider_account as a using (provider_account)
order by v.stored_at, v.source_order, v.entry_id, v.version
limit :row_limit::bigint;
