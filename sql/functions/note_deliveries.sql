-- Notes at which contacts of a channel the sends of a window failed, and which were reached; gives
-- up those where each has failed for p_give_up_after. Part of the flush that wrote the results.
--
-- The time starts with the first failure since the last success and since a day without any: a
-- quiet customer is not given up for two failures a week apart. Another address starts it anew too,
-- where it is imported. Returns how many accounts were suppressed, as failing.
create or replace function duebook.note_deliveries(
    p_channel text,
    p_failed text[],
    p_reached text[],
    p_give_up_after interval
) returns integer
language sql
set search_path = ''
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
    with reached as (
        delete from duebook.failing_contact as f
        where f.channel = p_channel and f.account_id = any(p_reached)
    ),
    failed as (
        insert into duebook.failing_contact as f (
            account_id, channel, failing_since, last_failed_at, failures
        )
        select g.account_id, p_channel, c.now, c.now, 1
        from (select pg_catalog.clock_timestamp() as now) as c
        cross join unnest(p_failed) as g (account_id)
        where g.account_id <> all(p_reached)
        order by g.account_id
        on conflict (account_id, channel) do update
            set
                failing_since = case
                    when f.last_failed_at >= excluded.last_failed_at - interval '1 day'
                        then f.failing_since
                    else excluded.failing_since
                end,
                last_failed_at = excluded.last_failed_at,
                failures = f.failures + 1
        returning f.account_id, f.failing_since, f.last_failed_at, f.failures
    ),
    given_up as (
        insert into duebook.suppression as s (account_id, channel, reason, source)
        select f.account_id, p_channel, 'failing', 'provider'
        from failed as f
        where f.failing_since <= f.last_failed_at - p_give_up_after and f.failures > 2
        order by f.account_id
        on conflict do nothing
        returning s.account_id
    ),
    audited as (
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        select
            'flush', 'suppress', g.account_id, 'channel:' || p_channel,
            pg_catalog.jsonb_build_object(
                'reason', 'failing', 'failing_since', f.failing_since, 'failures', f.failures
            )
        from given_up as g
        inner join failed as f on g.account_id = f.account_id
    )
    select pg_catalog.count(*)::integer from given_up;
$$;
comment on function duebook.note_deliveries(text, text[], text[], interval) is
'Notes where the sends of a window failed, and gives up contacts where all have for so long. Returns how many.';
