-- name: backdate_schedules
-- The history of a drill: every schedule was put at `put_at`, and no sweep has looked at it since.
-- In the drill's database only.
update duebook.schedule as s
set
    put_at = :put_at::timestamptz,
    next_on = s.starts_on,
    next_at = :put_at::timestamptz
where
    exists (
        select from duebook.environment as e
        where e.is_test and e.name = 'drill'
    );
