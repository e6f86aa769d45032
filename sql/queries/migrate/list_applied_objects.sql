-- name: list_applied_objects
-- The SQL files that this database was given, with their digests.
select
    path,
    sha256
from duebook.applied_object
order by path;
