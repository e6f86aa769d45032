-- name: open_incident
-- From here on manual replay is refused, and sweeps claim nothing where pauses_sweep.
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
from
    duebook.open_incident(
        :name::text, :reason::text, :band::interval, :pauses_sweep::boolean, :by::text
    ) as opened (incident_id)
inner join duebook.incident as i on opened.incident_id = i.incident_id;
