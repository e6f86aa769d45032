-- name: count_open_work
-- What the sweeps still have to do now: rows that are due, and rows that a batch holds.
select
    (
        select count(*) from duebook.due as d
        where d.due_at <= (select clock_timestamp())
    )
    + (select coalesce(sum(b.size), 0) from duebook.batch as b) as open_work;
