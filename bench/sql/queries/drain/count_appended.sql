-- name: count_appended
-- How many rows the bare append has written.
select
    (select count(*) from duebook.attempt) as attempts,
    (select count(*) from duebook.outcome) as outcomes;
