-- name: read_story_context
-- The clock, whether this database may send at all, which incident pauses the sweeps, and when a
-- sender last claimed anything.
select
    clock_timestamp() as now,
    duebook.environment_refusal(
        coalesce((select e.name from duebook.environment as e), '')
    ) as environment_refusal,
    duebook.sweep_paused_by() as sweep_paused_by,
    greatest(
        (select max(b.claimed_at) from duebook.batch as b),
        (
            select n.claimed_at from duebook.batch_ended as n
            order by n.batch_id desc
            limit 1
        )
    ) as last_claim_at;
