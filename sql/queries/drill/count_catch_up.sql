-- name: count_catch_up
-- What catch-up policies decided, by kind, each key once.
select
    d.kind,
    d.verdict,
    count(*) as number
from (
    select distinct
        c.account_id,
        c.operation_key,
        c.kind,
        c.verdict
    from duebook_reports.catch_up_decisions as c
) as d
group by 1, 2
order by 1, 2;
