-- name: read_sweep_permission
-- Whether a sender of this environment may send from this database, and whether its clock may be
-- shifted.
select
    duebook.environment_refusal(:environment::text) as refusal,
    coalesce((select e.is_test from duebook.environment as e), false) as is_test;
