-- name: record_applied_object
-- Note that a file was applied as it now is.
insert into duebook.applied_object (path, sha256)
values (:path, :sha256)
on conflict (path) do update set sha256 = excluded.sha256, applied_at = clock_timestamp();
