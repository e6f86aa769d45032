-- name: compare_entries
-- The diff: what was told against the current version of each entry, in one join. A row that does
-- not say its batch leaves the batch as it is.
insert into applied_entry
select
    s.source_no,
    s.line_no,
    s.entry_id,
    s.entry_type,
    s.provider_type,
    coalesce(s.batch_ref, c.batch_ref) as batch_ref,
    s.payment_ref,
    s.provider_payment_ref,
    s.gross_minor,
    s.fee_minor,
    s.net_minor,
    s.currency,
    s.net_currency,
    s.entry_status,
    s.occurred_at,
    s.available_at,
    s.source_order,
    s.source,
    s.body,
    s.source_hash,
    case
        when c.entry_id is null then 'new'
        when s.source_order < c.source_order then 'stale'
        else 'changed'
    end as change,
    1 as version,
    c.batch_ref as old_batch_ref,
    c.account_id as old_account_id,
    c.payment_id as old_payment_id
from staged_entry as s
left join duebook.settlement_entry as c
    on c.provider_account = :provider_account and s.entry_id = c.entry_id
where
    c.entry_id is null
    or (
        s.gross_minor,
        s.net_minor,
        s.fee_minor,
        s.entry_status,
        s.entry_type,
        s.provider_type,
        coalesce(s.batch_ref, c.batch_ref),
        s.payment_ref,
        s.provider_payment_ref,
        s.currency,
        s.net_currency,
        s.occurred_at,
        s.available_at
    )
    is distinct from
    (
        c.gross_minor,
        c.net_minor,
        c.fee_minor,
        c.entry_status,
        c.entry_type,
        c.provider_type,
        c.batch_ref,
        c.payment_ref,
        c.provider_payment_ref,
        c.currency,
        c.net_currency,
        c.occurred_at,
        c.available_at
    );
