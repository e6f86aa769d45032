-- name: find_entry_differences
-- Entries looked up in this run that no booked payment claims, or that several could. What occurred
-- after the books' own cut-off may be booked yet; what a group shares is claimed by it.
insert into finding (
    kind, subject, account_id, payment_id, entry_id, provider_minor, currency, detail
)
select
    case when c.candidates > 1 then 'duplicate_reference' else 'missing_in_ledger' end,
    concat('entry:', e.entry_id),
    c.account_id,
    c.payment_id,
    e.entry_id,
    e.gross_minor,
    e.currency,
    case
        when c.candidates > 1 then format('%s booked payments have its reference', c.candidates)
    end
from claim as c
inner join duebook.settlement_entry as e
    on e.provider_account = :provider_account and c.entry_id = e.entry_id
where
    e.entry_status <> 'withdrawn'
    and not exists (
        select from allocation_new as n
        where n.entry_id = c.entry_id and not n.is_gone
    )
    and (
        c.candidates > 1
        or (
            c.account_id is null
            and coalesce(e.occurred_at < :books_until::timestamptz, true)
            and (
                e.payment_ref is not null
                or e.entry_type in ('charge', 'refund', 'chargeback', 'chargeback_reversal')
            )
        )
    );
