-- name: take_contact_slots
-- Messages of a window that no contact cap has room for, and from when it has; the others are
-- entered.
select
    t.account_id,
    t.intent_id,
    t.free_at
from duebook.take_contact_slots(
    :channel::text, :account_ids::text[], :intent_ids::bigint[]
) as t;
