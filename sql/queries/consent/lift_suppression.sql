-- name: lift_suppression
-- Lets a channel reach an account again.
select
    duebook.lift_suppression(
        :account_id::text, :channel::text, :reason::text, :by::text
    ) as done;
