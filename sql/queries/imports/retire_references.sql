-- name: retire_references
-- A reference that a payment gives up: entries that carry it are looked at again by the next run.
insert into duebook.retired_reference (reference, account_id, payment_id)
select
    c.old_reference,
    c.account_id,
    c.payment_id
from changed_booking as c
where c.old_reference <> c.reference
union all
select
    c.old_group_reference,
    c.account_id,
    c.payment_id
from changed_booking as c
where
    c.old_group_reference is not null and c.old_group_reference is distinct from c.group_reference;
