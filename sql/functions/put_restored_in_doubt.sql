-- Puts intents that a restore may have taken back in doubt: they stand in due or held, and may have
-- been sent since. Each gets the attempt that may have been lost, in the batch that stands for the
-- lost claims (p_batch_id), so that a late result or a person can settle it like any other.
--
-- What has ended, or stands elsewhere, is left alone. Returns how many were moved.
create or replace function duebook.put_restored_in_doubt(
    p_account_ids text[],
    p_intent_ids bigint[],
    p_batch_id bigint,
    p_look_up_from timestamptz
) returns integer
language sql
set search_path = ''
as $$
    with given as materialized (
        select
            g.account_id,
            g.intent_id,
            (
                select coalesce(pg_catalog.max(a.attempt_no), 0)
                from duebook.attempt as a
                where a.account_id = g.account_id and a.intent_id = g.intent_id
            ) as last_attempt_no
        from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        where not exists (
            select
            from duebook.outcome as o
            where o.account_id = i.account_id and o.operation_key = i.operation_key
        )
    ),
    from_due as (
        delete from duebook.due as d
        using given as g
        where d.account_id = g.account_id and d.intent_id = g.intent_id
        returning
            d.account_id, d.intent_id, d.due_at, d.kind, d.channel, d.give_up_at, d.tries,
            d.suspicions, d.safe_retry_until, greatest(d.claims, g.last_attempt_no) + 1 as attempt_no
    ),
    from_held as (
        delete from duebook.held as h
        using given as g
        where h.account_id = g.account_id and h.intent_id = g.intent_id
        returning
            h.account_id, h.intent_id, h.due_at, h.kind, h.channel, h.give_up_at, h.tries,
            h.suspicions, h.safe_retry_until, greatest(h.claims, g.last_attempt_no) + 1 as attempt_no
    ),
    doubtful as (
        select d.* from from_due as d
        union all
        select h.* from from_held as h
    ),
    attempted as (
        insert into duebook.attempt (
            account_id, intent_id, attempt_no, batch_id, position,
            due_at, tries, suspicions, safe_retry_until, claimed_at
        )
        select
            d.account_id, d.intent_id, d.attempt_no, p_batch_id,
            pg_catalog.row_number() over (order by d.account_id, d.intent_id) - 1,
            d.due_at, d.tries, d.suspicions, d.safe_retry_until, pg_catalog.clock_timestamp()
        from doubtful as d
    ),
    put as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            d.account_id, d.intent_id, d.attempt_no, p_batch_id, 'restored', d.due_at, d.kind,
            d.channel, d.give_up_at, d.tries, d.attempt_no, p_look_up_from
        from doubtful as d
        order by d.account_id, d.intent_id
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*)::integer from put;
$$;
comment on function duebook.put_restored_in_doubt(text[], bigint[], bigint, timestamptz) is
'Puts due and held intents that may have been sent before a restore in doubt, each with its lost attempt. Returns how many.';
