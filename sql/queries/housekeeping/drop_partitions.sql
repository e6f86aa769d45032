-- name: drop_partitions
-- Drops the partitions of versions that are older than they are to be kept.
select
    p.partition_name,
    p.versions
from
    duebook.drop_partitions(
        clock_timestamp() - :kept_for::interval, :is_dry_run::boolean
    ) as p;
