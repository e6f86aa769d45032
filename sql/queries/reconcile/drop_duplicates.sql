-- name: drop_duplicates
-- Keeps the newest word about each entry (source order, then arrival). A row of an API's list does
-- not say its payout, so the newest word takes the batch from an older one that does.
with ranked as (
    select
        e.ctid as row_at,
        row_number() over newest_first as position,
        max(e.batch_ref) over (partition by e.entry_id) as batch_ref
    from staged_entry as e
    inner join staged_duplicate as d on e.entry_id = d.entry_id
    window newest_first as (
        partition by e.entry_id order by e.source_order desc, e.source_no desc, e.line_no desc
    )
),

named as (
    update staged_entry as e
    set batch_ref = r.batch_ref
    from ranked as r
    where e.ctid = r.row_at and r.position = 1 and e.batch_ref is null and r.batch_ref is not null
),

dropped as (
    delete from staged_entry as e
    using ranked as r
    where e.ctid = r.row_at and r.position > 1
    returning e.*, r.position
)

insert into superseded_entry
select d.*
from dropped as d;
