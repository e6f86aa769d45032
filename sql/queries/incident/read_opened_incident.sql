-- name: read_opened_incident
-- What an incident that was just opened found: what is due, and what senders still have in hand.
select
    i.name,
    i.reason,
    i.pauses_sweep,
    extract(epoch from i.oldest_due_band)::bigint as band_s,
    i.opened_by,
    i.opened_at,
    (
        select count(*)
        from duebook.incident_intent as n
        where n.incident_id = i.incident_id
    ) as due,
    (select count(*) from duebook.batch) as batches
from duebook.incident as i
where i.incident_id = :incident_id::bigint;
