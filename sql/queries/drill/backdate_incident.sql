-- name: backdate_incident
-- The history of a drill: the open incident was opened at `opened_at`. In a drill's database only.
update duebook.incident as i
set opened_at = :opened_at::timestamptz
where
    i.closed_at is null
    and exists (
        select from duebook.environment as e
        where e.is_test and e.name = 'drill'
    );
