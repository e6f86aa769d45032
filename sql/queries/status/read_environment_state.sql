-- name: read_environment_state
-- The clock, which environment this database was accepted as, and why a sender would refuse.
select
    clock_timestamp() as now,
    (select e.name from duebook.environment as e) as environment,
    coalesce((select e.is_test from duebook.environment as e), false) as is_test,
    duebook.environment_refusal(
        coalesce(:environment::text, (select e.name from duebook.environment as e), '')
    ) as refusal;
