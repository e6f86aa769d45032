-- Puts the intents of a lapsed batch, which the caller has locked, where they belong.
--
-- With a result: it was flushed, nothing is to be done. From the mark on: never tried, due at once.
-- Below the mark without a result: the provider may have accepted, so due only where the channel
-- recognises a repeat (safe_retry_until), else in doubt. The first window without a result is the
-- suspicious one: what stood there in two rescued batches is claimed alone from then on, and is
-- poison after max_claims. What an earlier attempt is known to have sent meanwhile has ended.
create or replace function duebook.rescue_batch(p_batch duebook.batch, p_window integer)
returns table (back_in_due integer, in_doubt integer, held integer)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_column
declare
    v_suspicious_from integer;
    v_suspicious_upto integer;
    v_sent_accounts text[];
    v_sent_intents bigint[];
    v_sent_attempts integer[];
begin
    -- Something was in I/O, or else the window that would have come next did not open.
    select coalesce(pg_catalog.min(w.ordinal) - 1, p_batch.mark) into v_suspicious_from
    from unnest(p_batch.account_ids, p_batch.intent_ids, p_batch.attempt_nos)
        with ordinality as w (account_id, intent_id, attempt_no, ordinal)
    where
        w.ordinal <= p_batch.mark
        and not exists (
            select
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no
        );
    v_suspicious_upto := case
        -- Internal acts open no window: what has no result was not done, and nothing left.
        when p_batch.channel = 'internal' then v_suspicious_from
        when v_suspicious_from < p_batch.mark then p_batch.mark
        else v_suspicious_from + p_window
    end;

    -- A late answer that came while this batch held the key waited for its end.
    select
        pg_catalog.array_agg(s.account_id),
        pg_catalog.array_agg(s.intent_id),
        pg_catalog.array_agg(s.attempt_no)
    into v_sent_accounts, v_sent_intents, v_sent_attempts
    from unnest(p_batch.account_ids, p_batch.intent_ids, p_batch.attempt_nos)
        as w (account_id, intent_id, attempt_no)
    cross join lateral (
        select
            r.account_id,
            r.intent_id,
            r.attempt_no
        from duebook.attempt_result as r
        where
            r.account_id = w.account_id
            and r.intent_id = w.intent_id
            and r.attempt_no < w.attempt_no
            and r.result = 'sent'
        order by r.attempt_no
        limit 1
    ) as s
    where
        w.attempt_no > 1
        and not exists (
            select
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no
        );
    if v_sent_accounts is not null then
        perform duebook.append_outcomes(v_sent_accounts, v_sent_intents, v_sent_attempts);
    end if;

    return query
    with unresulted as materialized (
        select
            a.*,
            i.kind,
            i.channel,
            i.give_up_at,
            w.ordinal > p_batch.mark as is_untried,
            w.ordinal > v_suspicious_from and w.ordinal <= v_suspicious_upto as is_suspicious,
            coalesce(a.safe_retry_until, p_batch.safe_retry_until) as repeat_until
        from unnest(p_batch.account_ids, p_batch.intent_ids, p_batch.attempt_nos)
            with ordinality as w (account_id, intent_id, attempt_no, ordinal)
        inner join duebook.attempt as a
            on
                w.account_id = a.account_id
                and w.intent_id = a.intent_id
                and w.attempt_no = a.attempt_no
        inner join duebook.intent as i
            on w.account_id = i.account_id and w.intent_id = i.intent_id
        where not exists (
            select
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no
        )
        order by a.account_id, a.intent_id
    ),
    placed as materialized (
        select
            u.*,
            case
                when exists (
                    select
                    from duebook.outcome as o
                    inner join duebook.intent as i
                        on o.account_id = i.account_id and o.operation_key = i.operation_key
                    where i.account_id = u.account_id and i.intent_id = u.intent_id
                ) then 'ended'
                when
                    not u.is_untried
                    and (
                        u.repeat_until is null
                        or u.repeat_until <= pg_catalog.clock_timestamp()
                    ) then 'in_doubt'
                when
                    u.is_suspicious
                    and duebook.is_poison(u.account_id, u.intent_id, u.kind, u.attempt_no)
                    then 'poison'
                else 'due'
            end as place
        from unresulted as u
    ),
    -- What was never tried has an end, so that it does not count as poison.
    ended as (
        insert into duebook.attempt_result (
            account_id, intent_id, attempt_no, batch_id, flush_no, result, reason, finished_at
        )
        select
            p.account_id, p.intent_id, p.attempt_no, p_batch.batch_id, p_batch.flush_no,
            'skipped', 'never_tried', pg_catalog.clock_timestamp()
        from placed as p
        where p.is_untried and (p.place = 'ended' or not p.is_suspicious)
        on conflict do nothing
    ),
    due as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            p.account_id, p.intent_id, p.due_at, p.kind, p.channel, p.give_up_at,
            p.tries, p.attempt_no, p.suspicions + p.is_suspicious::integer,
            case when p.is_untried then p.safe_retry_until else p.repeat_until end
        from placed as p
        where p.place = 'due'
        on conflict do nothing
    ),
    in_doubt as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            p.account_id, p.intent_id, p.attempt_no, p_batch.batch_id,
            case when p.repeat_until is null then 'sender_died' else 'retry_unsafe' end,
            p.due_at, p.kind, p.channel, p.give_up_at, p.tries, p.attempt_no,
            pg_catalog.clock_timestamp()
        from placed as p
        where p.place = 'in_doubt'
        on conflict do nothing
    ),
    held as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            p.account_id, p.intent_id, 'poison', p.due_at, p.kind, p.channel, p.give_up_at,
            p.tries, p.attempt_no, p.suspicions + 1,
            case when p.is_untried then p.safe_retry_until else p.repeat_until end
        from placed as p
        where p.place = 'poison'
        on conflict do nothing
    )
    select
        (pg_catalog.count(*) filter (where p.place = 'due'))::integer,
        (pg_catalog.count(*) filter (where p.place = 'in_doubt'))::integer,
        (pg_catalog.count(*) filter (where p.place = 'poison'))::integer
    from placed as p;
end;
$$;
comment on function duebook.rescue_batch(duebook.batch, integer) is
'Puts the intents of a lapsed batch, locked by the caller, back in due, in doubt or held.';
