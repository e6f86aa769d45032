-- name: put_suppression
-- Stops a channel for an account.
select
    duebook.suppress(
        :account_id::text, :channel::text, :reason::text, :by::text
    ) as done;
