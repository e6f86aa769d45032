-- name: read_sweep_permission
-- Whether a sender of this environment may send from this database, and whether its clock may be
-- shifted; and the open incident that pauses the sweeps, if one does.
select
    duebook.environment_refusal(:environment::text) as refusal,
    coalesce((select e.is_test from duebook.environment as e), false) as is_test,
    duebook.sweep_paused_by() as paused_by;
