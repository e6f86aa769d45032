-- name: give_contact_slots_back
-- What was entered under a contact cap and not sent after all does not count.
delete from duebook.contact_slot as s
using unnest(:account_ids::text[], :intent_ids::bigint[]) as w (account_id, intent_id)
where s.account_id = w.account_id and s.intent_id = w.intent_id;
