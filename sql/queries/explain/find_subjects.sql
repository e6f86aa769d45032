-- name: find_subjects
-- Whatever one word of an operator can mean: a run, an account, a payment, a reference, an entry.
-- Each arm is one index look-up; the same word may mean several of them, and all are returned.
with found as (
    select
        'run' as match_kind,
        null::text as account_id,
        null::text as payment_id,
        r.provider_account,
        null::text as entry_id,
        r.run_id
    from duebook.reconciliation_run as r
    where r.run_id = :run_id::bigint
    union all
    select
        'account' as match_kind,
        a.account_id,
        null as payment_id,
        null as provider_account,
        null as entry_id,
        null as run_id
    from (select :subject::text as account_id) as a
    where
        not :is_run
        and (
            exists (
                select 1 from duebook.ledger_payment as p
                where p.account_id = a.account_id
            )
            or exists (
                select 1 from duebook.contact as c
                where c.account_id = a.account_id
            )
            or exists (
                select 1 from duebook.intent as i
                where i.account_id = a.account_id
            )
        )
    union all
    select
        'payment' as match_kind,
        p.account_id,
        p.payment_id,
        null as provider_account,
        null as entry_id,
        null as run_id
    from duebook.ledger_payment as p
    where not :is_run and (p.payment_id = :subject or p.reference = :subject)
    union all
    select
        'entry' as match_kind,
        e.account_id,
        e.payment_id,
        a.provider_account,
        e.entry_id,
        null as run_id
    from duebook.provider_account as a
    inner join duebook.settlement_entry as e using (provider_account)
    where not :is_run and e.entry_id = :subject
    union all
    select
        'entry' as match_kind,
        null as account_id,
        null as payment_id,
        e.provider_account,
        e.entry_id,
        null as run_id
    from duebook.settlement_entry as e
    where not :is_run and e.payment_ref = :subject and e.account_id is null
)

select
    match_kind,
    account_id,
    payment_id,
    provider_account,
    entry_id,
    run_id
from found
order by match_kind, account_id, payment_id, provider_account, entry_id
limit :row_limit::bigint;
