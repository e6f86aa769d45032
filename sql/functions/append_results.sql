-- The slow way of a flush: appends results one by one past conflicts, and the endings that follow.
--
-- p_results is an array of {account_id, intent_id, attempt_no, result, reason, provider_code,
-- provider_message_id, finished_at}. A result that the attempt has already is not written again (an
-- audit event keeps it); one whose key has ended otherwise is kept as late, without an outcome.
-- Returns, per result written, whether it counts: only those may move an intent.
create or replace function duebook.append_results(
    p_batch_id bigint,
    p_flush_no integer,
    p_results jsonb
) returns table (account_id text, intent_id bigint, attempt_no integer, counts boolean)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_account_ids text[];
    v_intent_ids bigint[];
    v_attempt_nos integer[];
    v_counts boolean[];
    v_ends boolean[];
    v_expected bigint;
    v_written bigint;
begin
    with given as materialized (
        select r.*
        from pg_catalog.jsonb_to_recordset(p_results) as r (
            account_id text, intent_id bigint, attempt_no integer, result text, reason text,
            provider_code text, provider_message_id text, finished_at timestamptz
        )
    ),
    written as (
        insert into duebook.attempt_result as n (
            account_id, intent_id, attempt_no, batch_id, flush_no, result, reason,
            provider_code, provider_message_id, finished_at, is_late
        )
        select
            g.account_id, g.intent_id, g.attempt_no, p_batch_id, p_flush_no, g.result, g.reason,
            g.provider_code, g.provider_message_id, g.finished_at,
            g.result <> 'skipped' and exists (
                select
                from duebook.outcome as o
                inner join duebook.intent as i
                    on o.account_id = i.account_id and o.operation_key = i.operation_key
                where i.account_id = g.account_id and i.intent_id = g.intent_id
            )
        from given as g
        order by g.account_id, g.intent_id, g.attempt_no
        on conflict do nothing
        returning n.account_id, n.intent_id, n.attempt_no, n.result, not n.is_late as counts
    ),
    refused as (
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        select
            'flush', 'refuse_second_result', g.account_id, i.operation_key,
            pg_catalog.jsonb_build_object(
                'intent_id', g.intent_id, 'attempt_no', g.attempt_no, 'result', g.result,
                'provider_code', g.provider_code, 'provider_message_id', g.provider_message_id
            )
        from given as g
        left join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        where not exists (
            select
            from written as w
            where
                w.account_id = g.account_id
                and w.intent_id = g.intent_id
                and w.attempt_no = g.attempt_no
        )
    )
    select
        pg_catalog.array_agg(w.account_id),
        pg_catalog.array_agg(w.intent_id),
        pg_catalog.array_agg(w.attempt_no),
        pg_catalog.array_agg(w.counts),
        pg_catalog.array_agg(w.counts and w.result in ('sent', 'done', 'expired'))
    into v_account_ids, v_intent_ids, v_attempt_nos, v_counts, v_ends
    from written as w;

    select
        pg_catalog.count(*),
        duebook.append_outcomes(
            pg_catalog.array_agg(f.account_id),
            pg_catalog.array_agg(f.intent_id),
            pg_catalog.array_agg(f.attempt_no)
        )
    into v_expected, v_written
    from unnest(v_account_ids, v_intent_ids, v_attempt_nos, v_ends)
        as f (account_id, intent_id, attempt_no, ends)
    where f.ends;
    if v_written <> v_expected then
        -- A key ended between the two statements: the repeated flush sees it, and keeps it as late.
        raise exception 'a key ended while its flush was written'
            using errcode = 'serialization_failure';
    end if;

    return query
    select f.account_id, f.intent_id, f.attempt_no, f.counts
    from unnest(v_account_ids, v_intent_ids, v_attempt_nos, v_counts)
        as f (account_id, intent_id, attempt_no, counts);
end;
$$;
comment on function duebook.append_results(bigint, integer, jsonb) is
'The slow way of a flush: appends results past conflicts, and the outcomes that follow. Returns which of them count.';
