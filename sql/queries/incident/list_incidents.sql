-- name: list_incidents
-- Every incident, the newest first.
select
    i.name,
    i.reason,
    case
        when i.closed_at is not null then 'closed'
        when i.resumed_at is not null then 'resumed'
        when i.pauses_sweep then 'open, sweeps paused'
        else 'open'
    end as state,
    i.opened_by,
    i.opened_at,
    i.resumed_at,
    i.closed_at
from duebook.incident as i
order by i.incident_id desc;
