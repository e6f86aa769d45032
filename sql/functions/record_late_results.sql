-- A flush whose batch was rescued before: every result is kept as late, and those that settle what
-- is open do so.
--
-- A provider's answer (sent, or refused) ends a key that is in doubt, back in due or held. Where
-- the attempt itself is the one in doubt, any known end settles it: expired ends the key, and what
-- is certain not to have been accepted is due again at once. What another batch holds meanwhile is
-- left to that batch's gate, which reads late results. p_results as in append_results(). Returns
-- how many were kept, and how many keys ended.
create or replace function duebook.record_late_results(
    p_batch_id bigint,
    p_flush_no integer,
    p_results jsonb
) returns table (kept integer, ended integer)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_account_ids text[];
    v_intent_ids bigint[];
    v_attempt_nos integer[];
    v_results text[];
    v_answers boolean[];
    v_end_accounts text[];
    v_end_intents bigint[];
    v_end_attempts integer[];
begin
    -- A restore may have taken the claim back: its attempts come again with their results.
    insert into duebook.attempt (
        account_id, intent_id, attempt_no, batch_id, position, due_at, tries, suspicions, claimed_at
    )
    select
        g.account_id, g.intent_id, g.attempt_no, p_batch_id,
        pg_catalog.row_number() over (order by g.account_id, g.intent_id) - 1,
        i.notify_at, 0, 0, g.finished_at
    from pg_catalog.jsonb_to_recordset(p_results) as g (
        account_id text, intent_id bigint, attempt_no integer, finished_at timestamptz
    )
    inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
    order by g.account_id, g.intent_id
    on conflict do nothing;

    with written as (
        insert into duebook.attempt_result as n (
            account_id, intent_id, attempt_no, batch_id, flush_no, result, reason,
            provider_code, provider_message_id, finished_at, is_late
        )
        select
            g.account_id, g.intent_id, g.attempt_no, p_batch_id, p_flush_no, g.result, g.reason,
            g.provider_code, g.provider_message_id, g.finished_at, true
        from pg_catalog.jsonb_to_recordset(p_results) as g (
            account_id text, intent_id bigint, attempt_no integer, result text, reason text,
            provider_code text, provider_message_id text, finished_at timestamptz
        )
        inner join duebook.attempt as a
            on
                g.account_id = a.account_id
                and g.intent_id = a.intent_id
                and g.attempt_no = a.attempt_no
        order by g.account_id, g.intent_id, g.attempt_no
        on conflict do nothing
        returning n.account_id, n.intent_id, n.attempt_no, n.result, n.reason
    )
    select
        pg_catalog.array_agg(w.account_id),
        pg_catalog.array_agg(w.intent_id),
        pg_catalog.array_agg(w.attempt_no),
        pg_catalog.array_agg(w.result),
        pg_catalog.array_agg(w.result = 'sent' or (w.result = 'expired' and w.reason = 'refused'))
    into v_account_ids, v_intent_ids, v_attempt_nos, v_results, v_answers
    from written as w;

    -- A row that somebody holds is waited for: deletes are in key order, as everywhere.
    with late as materialized (
        select l.*
        from unnest(v_account_ids, v_intent_ids, v_attempt_nos, v_answers)
            as l (account_id, intent_id, attempt_no, is_answer)
        where l.is_answer
        order by l.account_id, l.intent_id
    ),
    from_due as (
        delete from duebook.due as d
        using late as l
        where d.account_id = l.account_id and d.intent_id = l.intent_id
        returning d.account_id, d.intent_id, l.attempt_no
    )
    select
        pg_catalog.array_agg(d.account_id),
        pg_catalog.array_agg(d.intent_id),
        pg_catalog.array_agg(d.attempt_no)
    into v_end_accounts, v_end_intents, v_end_attempts
    from from_due as d;

    -- A batch that holds such a key may be moving it to due, in_doubt or held at this moment, unaware
    -- of the answer above: its flush or rescue holds its row, so that is waited for before those are
    -- looked at. One that comes after this transaction reads the answer.
    perform b.batch_id
    from duebook.batch as b
    where
        b.batch_id in (
            select a.batch_id
            from unnest(v_account_ids, v_intent_ids) as l (account_id, intent_id)
            inner join duebook.attempt as a
                on l.account_id = a.account_id and l.intent_id = a.intent_id
        )
    order by b.batch_id
    for update;

    with late as materialized (
        select l.*
        from unnest(v_account_ids, v_intent_ids, v_attempt_nos, v_results, v_answers)
            as l (account_id, intent_id, attempt_no, result, is_answer)
        where l.result <> 'unknown'
        order by l.account_id, l.intent_id
    ),
    from_doubt as (
        delete from duebook.in_doubt as u
        using late as l
        where
            u.account_id = l.account_id
            and u.intent_id = l.intent_id
            and (l.is_answer or u.attempt_no = l.attempt_no)
        returning u.*, l.result, l.is_answer, l.attempt_no as late_attempt_no
    ),
    from_held as (
        delete from duebook.held as h
        using late as l
        where h.account_id = l.account_id and h.intent_id = l.intent_id and l.is_answer
        returning h.account_id, h.intent_id, l.attempt_no
    ),
    from_due_again as (
        delete from duebook.due as d
        using late as l
        where d.account_id = l.account_id and d.intent_id = l.intent_id and l.is_answer
        returning d.account_id, d.intent_id, l.attempt_no
    ),
    back as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at, tries, claims
        )
        select
            u.account_id, u.intent_id, u.due_at, u.kind, u.channel, u.give_up_at,
            u.tries + (u.result = 'failed')::integer, u.claims
        from from_doubt as u
        where u.result not in ('sent', 'done', 'expired')
        on conflict do nothing
    ),
    ending as (
        select u.account_id, u.intent_id, u.late_attempt_no as attempt_no
        from from_doubt as u
        where u.result in ('sent', 'done', 'expired')
        union
        select d.account_id, d.intent_id, d.attempt_no
        from unnest(v_end_accounts, v_end_intents, v_end_attempts)
            as d (account_id, intent_id, attempt_no)
        union
        select h.account_id, h.intent_id, h.attempt_no from from_held as h
        union
        select d.account_id, d.intent_id, d.attempt_no from from_due_again as d
    )
    select
        pg_catalog.array_agg(e.account_id),
        pg_catalog.array_agg(e.intent_id),
        pg_catalog.array_agg(e.attempt_no)
    into v_end_accounts, v_end_intents, v_end_attempts
    from ending as e;

    return query
    select
        coalesce(pg_catalog.cardinality(v_account_ids), 0),
        duebook.append_outcomes(v_end_accounts, v_end_intents, v_end_attempts)::integer;
end;
$$;
comment on function duebook.record_late_results(bigint, integer, jsonb) is
'Keeps the results of a rescued batch as late, and ends with them what is in doubt, back in due or held.';
