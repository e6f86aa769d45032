-- name: read_revision
-- The revision of this database.
select version_num
from duebook.alembic_version;
