-- name: advance_batch
-- Opens the next window: everything below the mark may be in I/O from here on. The mark may go
-- down: what the last window offered and did not start was never tried. The lease is renewed only
-- when the window before made progress, and never beyond its greatest age.
with advanced as (
    update duebook.batch as b
    set
        flush_no = b.flush_no + 1,
        window_start = :window_start::integer,
        mark = :mark::integer,
        lease_until = case
            when :renew::boolean
                then least(clock_timestamp() + :lease::interval, b.max_age_until)
            else b.lease_until
        end
    where b.batch_id = :batch_id::bigint
    returning b.lease_until, b.max_age_until, b.slot_from, b.slot_spacing
)

select
    clock_timestamp() as now,
    extract(epoch from a.lease_until - clock_timestamp())::float8 as lease_left_s,
    extract(epoch from a.max_age_until - clock_timestamp())::float8 as age_left_s,
    extract(epoch from a.slot_from - clock_timestamp())::float8 as slot_in_s,
    extract(epoch from a.slot_spacing)::float8 as slot_spacing_s
from advanced as a;
