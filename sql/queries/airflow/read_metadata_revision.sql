-- name: read_metadata_revision
-- The migration that Airflow's own metadata database stands at. Read in that database, not in
-- Duebook's: a local stack runs `airflow db migrate` (seconds) only when this has changed.
select version_num
from alembic_version;
