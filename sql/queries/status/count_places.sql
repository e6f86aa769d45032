-- name: count_places
-- How many intents stand in each place. Endings are counted exactly while they are few; a large
-- table is told by the planner's estimate, since a status must not read it.
select
    (select count(*) from duebook.proposed) as proposed,
    (select count(*) from duebook.due) as scheduled,
    (select coalesce(sum(b.size), 0)::bigint from duebook.batch as b)
    - (
        select count(*) from duebook.batch as b
        inner join duebook.attempt_result as r on b.batch_id = r.batch_id
    ) as enqueued,
    (select count(*) from duebook.in_doubt) as unknown,
    (select count(*) from duebook.held) as held,
    case
        when c.reltuples < 200000 then (select count(*) from duebook.outcome)
        else c.reltuples::bigint
    end as ended,
    c.reltuples >= 200000 as is_ended_estimated
from pg_catalog.pg_class as c
where c.oid = 'duebook.outcome'::regclass;
