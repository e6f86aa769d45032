-- name: read_batch
-- The lease of a batch whose window was opened by a flush that had been applied already.
select
    clock_timestamp() as now,
    extract(epoch from b.lease_until - clock_timestamp())::float8 as lease_left_s,
    extract(epoch from b.max_age_until - clock_timestamp())::float8 as age_left_s,
    extract(epoch from b.slot_from - clock_timestamp())::float8 as slot_in_s,
    extract(epoch from b.slot_spacing)::float8 as slot_spacing_s
from duebook.batch as b
where b.batch_id = :batch_id::bigint;
