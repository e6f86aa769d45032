-- Gives back the intents of a batch from position p_from on: they were never tried, keep their due
-- time, burn nothing, and each attempt gets its result. Returns how many.
create or replace function duebook.release_batch_from(
    p_batch_id bigint,
    p_from integer,
    p_reason text
) returns integer
language sql
set search_path = ''
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
    with untried as materialized (
        select
            a.account_id, a.intent_id, a.attempt_no, a.due_at, i.kind, i.channel, i.give_up_at,
            a.tries, a.suspicions, a.safe_retry_until, b.flush_no
        from duebook.batch as b
        cross join lateral unnest(b.account_ids, b.intent_ids, b.attempt_nos)
            with ordinality as w (account_id, intent_id, attempt_no, ordinal)
        inner join duebook.attempt as a
            on
                w.account_id = a.account_id
                and w.intent_id = a.intent_id
                and w.attempt_no = a.attempt_no
        left join duebook.intent as i
            on w.account_id = i.account_id and w.intent_id = i.intent_id
        where b.batch_id = p_batch_id and w.ordinal > p_from
        order by a.account_id, a.intent_id
    ),
    ended as (
        insert into duebook.attempt_result as r (
            account_id, intent_id, attempt_no, batch_id, flush_no, result, reason, finished_at
        )
        select
            u.account_id, u.intent_id, u.attempt_no, p_batch_id, u.flush_no, 'skipped', p_reason,
            pg_catalog.clock_timestamp()
        from untried as u
        on conflict do nothing
        returning r.account_id, r.intent_id
    ),
    due as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            u.account_id, u.intent_id, u.due_at, u.kind, u.channel, u.give_up_at,
            u.tries, u.attempt_no, u.suspicions, u.safe_retry_until
        from untried as u
        inner join ended as e on u.account_id = e.account_id and u.intent_id = e.intent_id
        where u.kind is not null
        on conflict do nothing
    )
    select pg_catalog.count(*)::integer from ended;
$$;
comment on function duebook.release_batch_from(bigint, integer, text) is
'Gives back the intents of a batch from a position on, which were never tried. Returns how many.';
