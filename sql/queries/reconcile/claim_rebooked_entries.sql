-- name: claim_rebooked_entries
-- Entries that imports since the last full run may concern: those in suspense under a reference
-- (or, where that counts, a provider's reference) that was booked or given up since, and those of
-- payments that were changed or share such a reference. A full run also looks again at what was in
-- suspense beyond the cut-off that the books had then.
with touched as (
    select
        p.account_id,
        p.payment_id,
        p.reference,
        p.group_reference,
        p.booked_version
    from duebook.ledger_payment as p
    where p.imported_xid >= :seen_xid::xid8
),

reference as (
    select t.reference
    from touched as t
    union
    select t.group_reference
    from touched as t
    where t.group_reference is not null
    union
    select r.reference
    from duebook.retired_reference as r
    where r.retired_xid >= :seen_xid::xid8
),

concerned as (
    select
        p.account_id,
        p.payment_id
    from reference as r
    inner join duebook.ledger_payment as p on r.reference = p.reference
    union
    select
        t.account_id,
        t.payment_id
    from touched as t
    where t.booked_version > 1
),

entry as (
    select
        e.entry_id,
        e.payment_ref,
        e.provider_payment_ref,
        e.occurred_at,
        e.account_id,
        e.payment_id
    from reference as r
    inner join duebook.settlement_entry as e on r.reference = e.payment_ref
    where
        e.provider_account = :provider_account
        and e.account_id is null
        and e.payment_ref is not null
    union
    select
        e.entry_id,
        e.payment_ref,
        e.provider_payment_ref,
        e.occurred_at,
        e.account_id,
        e.payment_id
    from reference as r
    inner join duebook.settlement_entry as e on r.reference = e.provider_payment_ref
    where
        'provider_payment_ref' = any(:match_on::text[])
        and e.provider_account = :provider_account
        and e.account_id is null
        and e.provider_payment_ref is not null
    union
    select
        e.entry_id,
        e.payment_ref,
        e.provider_payment_ref,
        e.occurred_at,
        e.account_id,
        e.payment_id
    from concerned as c
    inner join duebook.settlement_entry as e
        on c.account_id = e.account_id and c.payment_id = e.payment_id
    where e.provider_account = :provider_account and e.account_id is not null
    union
    select
        e.entry_id,
        e.payment_ref,
        e.provider_payment_ref,
        e.occurred_at,
        e.account_id,
        e.payment_id
    from duebook.settlement_entry as e
    where
        :is_full::boolean
        and :judged_books_until::timestamptz < coalesce(:books_until::timestamptz, 'infinity')
        and e.provider_account = :provider_account
        and e.account_id is null
        and (
            e.payment_ref is not null
            or e.entry_type in ('charge', 'refund', 'chargeback', 'chargeback_reversal')
        )
        and e.occurred_at >= :judged_books_until::timestamptz
        and coalesce(e.occurred_at < :books_until::timestamptz, true)
)

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
from entry as e
where not exists (
    select from applied_entry as a
    where a.entry_id = e.entry_id and a.change in ('new', 'changed')
);
