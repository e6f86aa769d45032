-- Deletes bodies of webhooks that were received before an instant, at most p_limit; their receipts
-- and keys stay, so that a repeat is still a duplicate. Returns how many.
create or replace function duebook.delete_webhook_bodies(p_before timestamptz, p_limit integer)
returns integer
language sql
security definer
set search_path = ''
as $$
    with old as materialized (
        select b.endpoint, b.event_id, b.body_sha256
        from duebook.webhook_body as b
        where
            b.received_at < p_before
            and not exists (
                select
                from duebook.pending_event as p
                where p.event_id = b.event_id and p.endpoint = b.endpoint
            )
        limit p_limit
    ),
    gone as (
        delete from duebook.webhook_body as b
        using old as o
        where
            b.endpoint = o.endpoint
            and b.event_id = o.event_id
            and b.body_sha256 = o.body_sha256
        returning 1
    )
    select pg_catalog.count(*)::integer from gone;
$$;
comment on function duebook.delete_webhook_bodies(timestamptz, integer) is
'Deletes bodies of webhooks that were received before an instant, in bounded numbers. Returns how many.';
