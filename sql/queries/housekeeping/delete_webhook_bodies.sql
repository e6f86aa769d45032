-- name: delete_webhook_bodies
-- Deletes bodies of webhooks that are older than they are to be kept, in bounded numbers.
select
    duebook.delete_webhook_bodies(
        clock_timestamp() - :kept_for::interval, :row_limit::integer
    ) as deleted;
