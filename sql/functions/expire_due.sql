-- Ends due intents that are past their limit, at most p_most of the oldest of each channel: also
-- where no claim reaches them (a paused channel, one that no sender serves). What somebody asked to
-- end is left to the gate, which knows the reason; what may have been accepted is left to it too.
create or replace function duebook.expire_due(p_most integer) returns integer
language sql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
    with recursive channel as (
        (
            select d.channel from duebook.due as d
            where d.suspicions < 2
            order by d.channel limit 1
        )
        union all
        select
            (
                select d.channel from duebook.due as d
                where d.channel > c.channel and d.suspicions < 2
                order by d.channel limit 1
            ) as channel
        from channel as c
        where c.channel is not null
    ),
    picked as materialized (
        select due.ctid
        from channel as c
        cross join lateral (
            select d.ctid
            from duebook.due as d
            where
                d.channel = c.channel
                and d.due_at <= (select pg_catalog.clock_timestamp())
                and d.suspicions < 2
            order by d.channel, d.due_at, d.intent_id
            limit p_most
        ) as oldest
        inner join duebook.due as due on oldest.ctid = due.ctid
        where
            due.give_up_at <= (select pg_catalog.clock_timestamp())
            and due.safe_retry_until is null
            and not exists (
                select
                from duebook.intent_request as q
                where q.account_id = due.account_id and q.intent_id = due.intent_id
            )
            and not exists (
                select
                from duebook.attempt_result as r
                where
                    r.account_id = due.account_id
                    and r.intent_id = due.intent_id
                    and r.result = 'sent'
            )
        for update of due skip locked
    ),
    gone as (
        delete from duebook.due as d
        where d.ctid = any(array(select p.ctid from picked as p))
        returning d.account_id, d.intent_id, d.due_at
    ),
    ended as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at
        )
        select
            i.account_id, i.operation_key, i.intent_id, i.kind, i.payment_id, 'expired', 'too_late',
            i.intended_local, i.zone, g.due_at
        from gone as g
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        order by i.account_id, i.operation_key
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*)::integer from ended;
$$;
comment on function duebook.expire_due(integer) is
'Ends due intents past their limit, at most p_most of the oldest of each channel, as too_late. Returns how many.';
