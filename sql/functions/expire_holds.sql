-- Expires the holds of the positions [p_from, p_upto) of an internal batch, which the caller has
-- locked, and ends their promises; set-based, in key order. Returns how many ended how.
--
-- Each hold is locked before it is looked at, so of a confirmation and this exactly one wins: what
-- was confirmed ends settled_meanwhile, what was cancelled before its end cancelled. A hold that is
-- not due after all (a clock set back) goes back unchanged; one that is missing is held.
create or replace function duebook.expire_holds(
    p_batch duebook.batch,
    p_from integer,
    p_upto integer,
    p_due_offset interval
) returns table (done integer, expired integer, skipped integer, held integer)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set plan_cache_mode = 'force_generic_plan'
as $$
#variable_conflict use_column
declare
    v_locked bigint;
    v_now timestamptz;
begin
    with wanted as materialized (
        select i.account_id, pg_catalog.substr(i.subject, 6) as hold
        from duebook.read_batch_window(p_batch.batch_id, p_from, p_upto) as w
        inner join duebook.intent as i on w.account_id = i.account_id and w.intent_id = i.intent_id
    ),
    locked as materialized (
        select h.account_id, h.hold
        from wanted as w
        inner join duebook.hold as h on w.account_id = h.account_id and w.hold = h.hold
        order by h.account_id, h.hold
        for update of h
    )
    select pg_catalog.count(*) into v_locked from locked;
    v_now := pg_catalog.clock_timestamp();

    return query
    with judged as materialized (
        select
            w.account_id,
            w.intent_id,
            w.attempt_no,
            w.due_at,
            i.operation_key,
            i.kind,
            i.payment_id,
            i.give_up_at,
            h.hold_ctid,
            case
                when i.intent_id is null then 'no_intent'
                when exists (
                    select
                    from duebook.outcome as o
                    where o.account_id = i.account_id and o.operation_key = i.operation_key
                ) then 'has_outcome'
                when h.hold_ctid is null then 'gate_failed'
                when h.confirmed_at is not null then 'settled_meanwhile'
                when h.cancelled_at < h.expires_at then 'cancelled'
                when exists (
                    select
                    from duebook.intent_request as q
                    where q.account_id = i.account_id and q.intent_id = i.intent_id
                ) then 'cancelled'
                when h.expires_at > v_now + p_due_offset then 'not_due'
            end as reason
        from duebook.read_batch_window(p_batch.batch_id, p_from, p_upto) as w
        left join duebook.intent as i on w.account_id = i.account_id and w.intent_id = i.intent_id
        left join lateral (
            select n.ctid as hold_ctid, n.expires_at, n.confirmed_at, n.cancelled_at
            from duebook.hold as n
            where n.account_id = i.account_id and n.hold = pg_catalog.substr(i.subject, 6)
            limit 1
        ) as h on true
    ),
    decided as materialized (
        select
            j.*,
            case
                when j.reason is null then 'done'
                when j.reason in ('settled_meanwhile', 'cancelled') then 'expired'
                when j.reason = 'gate_failed' then 'held'
                else 'skipped'
            end as result
        from judged as j
        order by j.account_id, j.operation_key
    ),
    swept as (
        -- Their places can't change: they are locked.
        update duebook.hold as h
        set expired_at = v_now
        where h.ctid = any(array(select d.hold_ctid from decided as d where d.result = 'done'))
    ),
    answered as (
        insert into duebook.attempt_result (
            account_id, intent_id, attempt_no, batch_id, flush_no, result, reason, finished_at
        )
        select
            d.account_id, d.intent_id, d.attempt_no, p_batch.batch_id, p_batch.flush_no + 1,
            d.result, d.reason, v_now
        from decided as d
    ),
    ended as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason, due_at,
            ended_at, attempt_no
        )
        select
            d.account_id, d.operation_key, d.intent_id, d.kind, d.payment_id, d.result, d.reason,
            d.due_at, v_now, d.attempt_no
        from decided as d
        where d.result in ('done', 'expired')
    ),
    back as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at, claims
        )
        select
            d.account_id, d.intent_id, d.due_at, d.kind, p_batch.channel, d.give_up_at, d.attempt_no
        from decided as d
        where d.reason = 'not_due'
    ),
    kept as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims, detail,
            retest_at
        )
        select
            d.account_id, d.intent_id, d.reason, d.due_at, d.kind, p_batch.channel, d.give_up_at,
            0, d.attempt_no, 'there is no such hold', v_now + interval '1 hour'
        from decided as d
        where d.result = 'held'
    )
    select
        (pg_catalog.count(*) filter (where d.result = 'done'))::integer,
        (pg_catalog.count(*) filter (where d.result = 'expired'))::integer,
        (pg_catalog.count(*) filter (where d.result = 'skipped'))::integer,
        (pg_catalog.count(*) filter (where d.result = 'held'))::integer
    from decided as d;
end;
$$;
comment on function duebook.expire_holds(duebook.batch, integer, integer, interval) is
'Expires the holds of some positions of a locked internal batch, and ends their promises. Returns how many ended how.';
