-- Ends the doubt about intents, from a look-up at the provider or by a person. p_accepted true ends
-- the key as sent, with the attempt that is in doubt; false puts it back in due with an
-- intent_change, where its policy and its limit judge it like any other.
--
-- One of several that race has the effect: the row in doubt is what they meet at, and a late result
-- that was first has taken it away. p_not_before: only doubts whose look_up_from is not later (a
-- look-up's "not known" counts only from then on). Returns what was done for each intent that
-- exists: sent, due, had_ended, too_early or not_in_doubt. Each effect is an audit event.
create or replace function duebook.resolve_in_doubt(
    p_account_ids text[],
    p_intent_ids bigint[],
    p_accepted boolean,
    p_not_before timestamptz,
    p_how text,
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
    with locked as materialized (
        select u.account_id, u.intent_id
        from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
        inner join duebook.in_doubt as u
            on g.account_id = u.account_id and g.intent_id = u.intent_id
        where p_not_before is null or u.look_up_from <= p_not_before
        order by u.account_id, u.intent_id
        for update of u
    ),
    gone as (
        delete from duebook.in_doubt as u
        using locked as l
        where u.account_id = l.account_id and u.intent_id = l.intent_id
        returning u.*
    ),
    ended as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at, attempt_no
        )
        select
            i.account_id, i.operation_key, i.intent_id, i.kind, i.payment_id, 'sent', p_how,
            i.intended_local, i.zone, g.due_at, g.attempt_no
        from gone as g
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        where p_accepted
        order by i.account_id, i.operation_key
        on conflict do nothing
    ),
    back as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at, tries, claims
        )
        select
            g.account_id, g.intent_id, g.due_at, g.kind, g.channel, g.give_up_at, g.tries, g.claims
        from gone as g
        where not p_accepted
        order by g.account_id, g.intent_id
        on conflict do nothing
    ),
    changed as (
        insert into duebook.intent_change (account_id, intent_id, due_at, reason)
        select g.account_id, g.intent_id, g.due_at, 'resolved'
        from gone as g
        where not p_accepted
    ),
    audited as (
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        select
            p_by,
            'resolve_in_doubt',
            i.account_id,
            i.operation_key,
            pg_catalog.jsonb_build_object(
                'accepted', p_accepted, 'how', p_how, 'why', p_why,
                'attempt_no', g.attempt_no, 'cause', g.cause
            )
        from gone as g
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
    )
    select pg_catalog.array_agg(g.account_id), pg_catalog.array_agg(g.intent_id)
    into v_account_ids, v_intent_ids
    from gone as g;

    return query
    select
        i.account_id,
        i.intent_id,
        case
            when
                exists (
                    select
                    from unnest(v_account_ids, v_intent_ids) as r (account_id, intent_id)
                    where r.account_id = i.account_id and r.intent_id = i.intent_id
                )
                then case when p_accepted then 'sent' else 'due' end
            when
                exists (
                    select
                    from duebook.outcome as o
                    where o.account_id = i.account_id and o.operation_key = i.operation_key
                )
                then 'had_ended'
            when
                exists (
                    select
                    from duebook.in_doubt as u
                    where u.account_id = i.account_id and u.intent_id = i.intent_id
                )
                then 'too_early'
            else 'not_in_doubt'
        end
    from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
    inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id;
end;
$$;
comment on function duebook.resolve_in_doubt(
    text[], bigint[], boolean, timestamptz, text, text, text
) is
'Ends the doubt about intents: sent, or back in due. Returns per intent: sent, due, had_ended, too_early or not_in_doubt.';
