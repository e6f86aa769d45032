-- Ends intents that wait (due, held, proposed) with result expired and p_reason; for those that a
-- batch holds or that are in doubt, appends p_request, which the gate reads before the next window.
-- An ended one is left alone. Returns what was done for each intent that exists.
create or replace function duebook.end_waiting_intents(
    p_account_ids text[],
    p_intent_ids bigint[],
    p_request text,
    p_reason text,
    p_why text,
    p_by text
) returns table (account_id text, intent_id bigint, done text)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_account_ids text[];
    v_intent_ids bigint[];
begin
    -- A claim that holds the row is waited for; if it took it, the request below is for its gate.
    with given as materialized (
        select g.account_id, g.intent_id
        from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
        order by g.account_id, g.intent_id
    ),
    from_due as (
        delete from duebook.due as d
        using given as g
        where d.account_id = g.account_id and d.intent_id = g.intent_id
        returning d.account_id, d.intent_id, d.due_at
    ),
    from_held as (
        delete from duebook.held as h
        using given as g
        where h.account_id = g.account_id and h.intent_id = g.intent_id
        returning h.account_id, h.intent_id, h.due_at
    ),
    from_proposed as (
        delete from duebook.proposed as p
        using given as g
        where p.account_id = g.account_id and p.intent_id = g.intent_id
        returning p.account_id, p.intent_id
    ),
    gone as (
        select d.account_id, d.intent_id, d.due_at from from_due as d
        union all
        select h.account_id, h.intent_id, h.due_at from from_held as h
        union all
        select p.account_id, p.intent_id, null from from_proposed as p
    ),
    ended as (
        insert into duebook.outcome as o (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at
        )
        select
            i.account_id, i.operation_key, i.intent_id, i.kind, i.payment_id, 'expired', p_reason,
            i.intended_local, i.zone, coalesce(g.due_at, i.notify_at)
        from gone as g
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        order by i.account_id, i.operation_key
        on conflict do nothing
        returning o.account_id, o.intent_id
    )
    select pg_catalog.array_agg(e.account_id), pg_catalog.array_agg(e.intent_id)
    into v_account_ids, v_intent_ids
    from ended as e;

    return query
    with given as (
        select
            i.account_id,
            i.intent_id,
            exists (
                select
                from duebook.outcome as o
                where o.account_id = i.account_id and o.operation_key = i.operation_key
            ) as has_outcome,
            exists (
                select
                from unnest(v_account_ids, v_intent_ids) as e (account_id, intent_id)
                where e.account_id = i.account_id and e.intent_id = i.intent_id
            ) as is_ended_here
        from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
    ),
    requested as (
        insert into duebook.intent_request (
            account_id, intent_id, request, reason, requested_by
        )
        select g.account_id, g.intent_id, p_request, p_why, p_by
        from given as g
        where
            not g.has_outcome
            and not exists (
                select
                from duebook.intent_request as q
                where
                    q.account_id = g.account_id
                    and q.intent_id = g.intent_id
                    and q.request = p_request
            )
    )
    select
        g.account_id,
        g.intent_id,
        case
            when g.is_ended_here then 'ended'
            when g.has_outcome then 'had_ended'
            else 'requested'
        end
    from given as g;
end;
$$;
comment on function duebook.end_waiting_intents(text[], bigint[], text, text, text, text) is
'Ends waiting intents as expired; appends a request for those that a batch holds. Returns per intent: ended, had_ended or requested.';
