-- name: audit_reassignments
-- An entry that went from one payment to another, or to none, is on record.
insert into duebook.audit_event (actor, action, account_id, subject, detail)
select
    'reconcile',
    'reassign_entry',
    coalesce(c.account_id, c.old_account_id),
    concat('entry:', :provider_account::text, ':', c.entry_id),
    jsonb_build_object(
        'run_id', :run_id::bigint,
        'from_account', c.old_account_id,
        'from_payment', c.old_payment_id,
        'to_account', c.account_id,
        'to_payment', c.payment_id
    )
from claim as c
where
    c.old_account_id is not null
    and (c.old_account_id, c.old_payment_id) is distinct from (c.account_id, c.payment_id)
order by c.entry_id;
