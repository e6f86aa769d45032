-- name: count_old_webhook_bodies
-- Bodies of webhooks that are older than they are to be kept.
select count(*) as bodies
from duebook.webhook_body as b
where b.received_at < clock_timestamp() - :kept_for::interval;
