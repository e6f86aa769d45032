-- name: read_last_claim
-- When a sender last claimed anything.
select
    greatest(
        (select max(b.claimed_at) from duebook.batch as b),
        (
            select n.claimed_at from duebook.batch_ended as n
            order by n.batch_id desc
            limit 1
        )
    ) as last_claim_at;
