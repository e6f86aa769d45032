-- name: open_incident
-- From here on manual replay is refused, and sweeps claim nothing where pauses_sweep.
select
    duebook.open_incident(
        :name::text, :reason::text, :band::interval, :pauses_sweep::boolean, :by::text
    ) as incident_id;
