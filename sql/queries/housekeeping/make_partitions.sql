-- name: make_partitions
-- Makes the partitions of the next months.
select
    p.partition_name,
    p.done
from duebook.make_partitions(:months::integer) as p;
