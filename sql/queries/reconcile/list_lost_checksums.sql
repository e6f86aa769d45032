-- name: list_lost_checksums
-- Files that were new when they were staged and known when they were to be registered.
select s.sha256
from staged_source as s
where s.sha256 is not null and s.file_id is null;
