-- The schema after every migration, function, view and grant: written by `make schema`
-- (python -m duebook.db.snapshot), compared by tests/db/test_schema_snapshot.py. Never applied.

CREATE SCHEMA duebook;

COMMENT ON SCHEMA duebook IS 'Duebook: evidence, books, promises, moving state and endings. Analysts read duebook_reports.';

CREATE SCHEMA duebook_reports;

COMMENT ON SCHEMA duebook_reports IS 'The stable reports. Columns are added, never renamed; no addresses, no raw bodies.';

CREATE FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with identity as (
        select
            (select system_identifier from pg_catalog.pg_control_system()) as system_identifier,
            (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
            as database_oid
    ),
    accepted as (
        insert into duebook.environment as e (
            name, is_test, system_identifier, database_oid, accepted_by
        )
        select p_name, p_is_test, i.system_identifier, i.database_oid, p_by
        from identity as i
        on conflict (only_row) do update
        set
            name = excluded.name,
            is_test = excluded.is_test,
            system_identifier = excluded.system_identifier,
            database_oid = excluded.database_oid,
            accepted_at = pg_catalog.clock_timestamp(),
            accepted_by = excluded.accepted_by
        where
            (e.name, e.is_test, e.system_identifier, e.database_oid)
            is distinct from
            (excluded.name, excluded.is_test, excluded.system_identifier, excluded.database_oid)
        returning name
    )
    insert into duebook.audit_event (actor, action, subject, detail)
    select p_by, 'accept_environment', name, pg_catalog.jsonb_build_object('is_test', p_is_test)
    from accepted;
$$;

COMMENT ON FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) IS 'Accepts this database as the named environment; audited; a no-op when it already is.';

CREATE FUNCTION duebook.accept_restore(p_witnessed jsonb, p_is_unwitnessed boolean, p_by text) RETURNS TABLE(restore_id bigint, from_due integer, from_held integer, from_batches integer, lost_provider_accounts text[], intents_were_lost boolean)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    c_longest_io constant interval := interval '15 minutes';
    v_now timestamptz := pg_catalog.clock_timestamp();
    v_batch_id bigint := pg_catalog.nextval('duebook.batch_batch_id_seq');
    v_look_up_from timestamptz;
    v_newest_intent_id bigint;
    v_lost_accounts text[];
    v_intents_were_lost boolean;
    v_due integer;
    v_held integer;
    v_batched integer;
    v_restore_id bigint;
begin
    -- A sender that lives may go on with its last window for as long as a lease can last.
    select
        greatest(v_now, pg_catalog.max(w.at) + c_longest_io), pg_catalog.max(w.newest_intent_id)
    into v_look_up_from, v_newest_intent_id
    from pg_catalog.jsonb_to_recordset(p_witnessed) as w (
        at timestamptz, newest_intent_id bigint
    );
    -- The number alone could be that of a later run, made after the restore.
    select coalesce(pg_catalog.array_agg(distinct n.provider_account), '{}') into v_lost_accounts
    from pg_catalog.jsonb_to_recordset(p_witnessed) as w (at timestamptz, runs jsonb)
    cross join lateral pg_catalog.jsonb_each_text(w.runs) as n (provider_account, run_id)
    where not exists (
        select
        from duebook.reconciliation_run as r
        where
            r.run_id = n.run_id::bigint
            and r.provider_account = n.provider_account
            and r.started_at <= w.at
    );
    if p_is_unwitnessed then
        select coalesce(pg_catalog.array_agg(a.provider_account), '{}') into v_lost_accounts
        from duebook.provider_account as a;
    end if;
    v_intents_were_lost := pg_catalog.cardinality(v_lost_accounts) > 0 or coalesce(
        v_newest_intent_id > (
            select coalesce(pg_catalog.max(i.intent_id), 0) from duebook.intent as i
        ),
        false
    );

    select duebook.put_restored_in_doubt(
        pg_catalog.array_agg(d.account_id), pg_catalog.array_agg(d.intent_id),
        v_batch_id, v_look_up_from
    ) into v_due
    from duebook.due as d
    where d.due_at <= v_now and d.channel <> 'internal';
    select duebook.put_restored_in_doubt(
        pg_catalog.array_agg(h.account_id), pg_catalog.array_agg(h.intent_id),
        v_batch_id, v_look_up_from
    ) into v_held
    from duebook.held as h
    where h.due_at <= v_now and h.channel <> 'internal';
    v_batched := duebook.doubt_batches(v_look_up_from);

    insert into duebook.batch_ended (batch_id, token, sender, how, flush_no, size, claimed_at)
    values (
        v_batch_id, pg_catalog.gen_random_uuid(), 'restore accept', 'dismantled', 0,
        v_due + v_held, v_now
    );
    insert into duebook.restore_accepted as r (
        accepted_at, accepted_by, batch_id, witnessed, lost_batches, intents_were_lost,
        lost_provider_accounts, put_in_doubt
    )
    values (
        v_now, p_by, v_batch_id, p_witnessed, pg_catalog.jsonb_array_length(p_witnessed),
        v_intents_were_lost, v_lost_accounts, v_due + v_held + v_batched
    )
    returning r.restore_id into v_restore_id;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'accept_restore', 'restore:' || v_restore_id,
        pg_catalog.jsonb_build_object(
            'from_due', v_due, 'from_held', v_held, 'from_batches', v_batched,
            'lost_provider_accounts', v_lost_accounts, 'witnessed', p_witnessed
        )
    );
    return query
    select v_restore_id, v_due, v_held, v_batched, v_lost_accounts, v_intents_were_lost;
end;
$$;

COMMENT ON FUNCTION duebook.accept_restore(p_witnessed jsonb, p_is_unwitnessed boolean, p_by text) IS 'Accepts a database that is behind its witness: what may have been sent since the restore is put in doubt.';

CREATE FUNCTION duebook.amount_fault(p_text text, p_exponent smallint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $_$
    select
        case
            when p_text is null then null
            when p_text !~ '^-?([0-9]+\.?[0-9]*|\.[0-9]+)$' then 'not a number'
            when char_length(p_text) > 40 then 'too long a number'
            when pg_catalog.min_scale(p_text::numeric) > p_exponent
                then 'more decimals than the currency has'
            when pg_catalog.abs(p_text::numeric) * 10::numeric ^ p_exponent >= 9223372036854775807
                then 'too large a number'
        end;
$_$;

COMMENT ON FUNCTION duebook.amount_fault(p_text text, p_exponent smallint) IS 'What is wrong with a text as a decimal amount of a currency with so many decimals; null: nothing.';

CREATE FUNCTION duebook.append_outcomes(p_account_ids text[], p_intent_ids bigint[], p_attempt_nos integer[]) RETURNS bigint
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with written as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at, attempt_no, provider_message_id
        )
        select
            i.account_id, i.operation_key, i.intent_id, i.kind, i.payment_id, r.result, r.reason,
            i.intended_local, i.zone, a.due_at, r.attempt_no, r.provider_message_id
        from unnest(p_account_ids, p_intent_ids, p_attempt_nos)
            as g (account_id, intent_id, attempt_no)
        inner join duebook.intent as i
            on g.account_id = i.account_id and g.intent_id = i.intent_id
        inner join duebook.attempt as a
            on
                g.account_id = a.account_id
                and g.intent_id = a.intent_id
                and g.attempt_no = a.attempt_no
        inner join duebook.attempt_result as r
            on
                g.account_id = r.account_id
                and g.intent_id = r.intent_id
                and g.attempt_no = r.attempt_no
        order by i.account_id, i.operation_key
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*) from written;
$$;

COMMENT ON FUNCTION duebook.append_outcomes(p_account_ids text[], p_intent_ids bigint[], p_attempt_nos integer[]) IS 'Writes the outcome of each given attempt from its stored result; a key that has one keeps it. Returns how many were written.';

CREATE FUNCTION duebook.append_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) RETURNS TABLE(account_id text, intent_id bigint, attempt_no integer, counts boolean)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

COMMENT ON FUNCTION duebook.append_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) IS 'The slow way of a flush: appends results past conflicts, and the outcomes that follow. Returns which of them count.';

CREATE FUNCTION duebook.ask_to_send(p_account_id text, p_operation_key text, p_sender text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
declare
    v_taken_by text;
    v_ownership text;
    v_now timestamptz;
begin
    if not exists (
        select from duebook.old_sender as s where s.sender = p_sender and s.asks
    ) then
        raise exception '% is no old sender that asks: state [old_senders.%] in duebook.toml',
            p_sender, p_sender
            using errcode = 'no_data_found';
    end if;

    insert into duebook.sender_key as k (account_id, operation_key, sender)
    values (p_account_id, p_operation_key, p_sender)
    on conflict do nothing
    returning k.taken_at into v_now;
    if not found then
        select k.sender into v_taken_by
        from duebook.sender_key as k
        where k.account_id = p_account_id and k.operation_key = p_operation_key;
        return case
            when v_taken_by = p_sender then 'asked_before'
            when v_taken_by = 'duebook' then 'duebook'
            else 'taken'
        end;
    end if;

    select duebook.current_ownership(i.account_id, i.intent_id, i.ownership) into v_ownership
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key;
    if not found then
        select duebook.deciding_mode(a.mode, c.mode, a.notify_from) into v_ownership
        from duebook.provider_account as a
        left join
            lateral duebook.cohort_of(p_account_id, a.provider_account) as c on true
        where
            duebook.key_part(a.provider_account)
            = pg_catalog.split_part(p_operation_key, ':', 3);
        v_taken_by := 'wait';
    else
        v_taken_by := 'duebook';
    end if;
    if v_ownership = 'live' then
        delete from duebook.sender_key as k
        where k.account_id = p_account_id and k.operation_key = p_operation_key;
        return v_taken_by;
    end if;

    insert into duebook.observed_send (
        sender, source, external_id, account_id, operation_key, kind, channel, sent_at
    )
    values (
        p_sender, 'asked', 'asked:' || p_account_id || ':' || p_operation_key, p_account_id,
        p_operation_key, duebook.key_kind(p_operation_key),
        pg_catalog.split_part(p_operation_key, ':', 2), v_now
    )
    on conflict do nothing;
    return 'send';
end;
$$;

COMMENT ON FUNCTION duebook.ask_to_send(p_account_id text, p_operation_key text, p_sender text) IS 'An old sender asks for a key and takes it in the same act. Returns send, asked_before, duebook, wait or taken.';

CREATE FUNCTION duebook.audit_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone, p_counts boolean) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_source,
        'consent',
        p_account_id,
        p_kind || ':' || p_channel,
        pg_catalog.jsonb_build_object(
            'granted', p_granted, 'decided_at', p_decided_at, 'counts', p_counts
        )
    );
$$;

COMMENT ON FUNCTION duebook.audit_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone, p_counts boolean) IS 'Keeps each decision about consent, also those that no longer count.';

CREATE FUNCTION duebook.batch_status(p_difference_minor bigint, p_has_payout boolean, p_is_itemisable boolean, p_is_complete boolean) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        case
            when not p_is_itemisable then 'not_itemisable'
            when p_difference_minor = 0 and p_has_payout then 'closed'
            when p_difference_minor = 0 then 'carried'
            when not p_is_complete then 'open'
            else 'not_closed'
        end;
$$;

COMMENT ON FUNCTION duebook.batch_status(p_difference_minor bigint, p_has_payout boolean, p_is_itemisable boolean, p_is_complete boolean) IS 'Status of a settlement batch in one net currency: closed, carried, open, not_closed, not_itemisable.';

CREATE FUNCTION duebook.cancel_hold(p_account_id text, p_hold text, p_reason text DEFAULT 'cancelled'::text, p_by text DEFAULT SESSION_USER) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_hold duebook.hold;
    v_now timestamptz;
    v_state text;
begin
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold
    for update;
    if not found then
        raise exception 'there is no hold % of this account', p_hold
            using errcode = 'no_data_found';
    end if;
    v_now := pg_catalog.clock_timestamp();
    v_state := duebook.hold_state(v_hold, v_now);
    if v_state not in ('open', 'expired') then
        return case v_state
            when 'cancelled' then 'already_cancelled'
            when 'refunded' then 'refund'
            else 'confirmed'
        end;
    end if;

    update duebook.hold as h
    set cancelled_at = v_now
    where h.account_id = p_account_id and h.hold = p_hold;
    if v_state = 'open' then
        -- One that had expired already ends as expired by the sweep.
        perform duebook.end_hold_expiry(v_hold, 'cancelled', p_reason, p_by);
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'cancel_hold', p_account_id,
        duebook.hold_expiry_key(v_hold.hold, v_hold.expires_at),
        pg_catalog.jsonb_build_object('reason', p_reason, 'was', v_state)
    );
    return 'cancelled';
end;
$$;

COMMENT ON FUNCTION duebook.cancel_hold(p_account_id text, p_hold text, p_reason text, p_by text) IS 'Cancels a hold. Returns cancelled, already_cancelled, confirmed or refund.';

CREATE FUNCTION duebook.cancel_intent(p_account_id text, p_operation_key text, p_reason text, p_by text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_intent_id bigint;
    v_done text;
begin
    select i.intent_id into v_intent_id
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key;
    if not found then
        raise exception 'there is no intent with this operation key for this account'
            using errcode = 'no_data_found';
    end if;

    select e.done into v_done
    from duebook.end_waiting_intents(
        array[p_account_id], array[v_intent_id], 'cancel', 'cancelled', p_reason, p_by
    ) as e;
    if v_done <> 'had_ended' then
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        values (
            p_by, 'cancel_intent', p_account_id, p_operation_key,
            pg_catalog.jsonb_build_object('reason', p_reason, 'done', v_done)
        );
    end if;
    return case v_done when 'ended' then 'cancelled' when 'had_ended' then 'ended' else v_done end;
end;
$$;

COMMENT ON FUNCTION duebook.cancel_intent(p_account_id text, p_operation_key text, p_reason text, p_by text) IS 'Cancels one promise. Returns cancelled, requested (a sender holds it) or ended (it had an outcome).';

CREATE FUNCTION duebook.cancel_schedule(p_account_id text, p_schedule text, p_reason text, p_by text) RETURNS TABLE(cancelled boolean, ended integer, requested integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_cancelled_at timestamptz;
    v_ended integer;
    v_requested integer;
begin
    if
        pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a cancellation states its reason and who cancels'
            using errcode = 'invalid_parameter_value';
    end if;
    -- A pass that writes occurrences holds this row: what it wrote is seen below.
    select s.cancelled_at into v_cancelled_at
    from duebook.schedule as s
    where s.account_id = p_account_id and s.schedule = p_schedule
    for update;
    if not found then
        raise exception 'there is no schedule of this name for this account'
            using errcode = 'no_data_found';
    end if;
    if v_cancelled_at is not null then
        return query select false, 0, 0;
        return;
    end if;
    update duebook.schedule as s
    set
        cancelled_at = pg_catalog.clock_timestamp(),
        cancelled_by = p_by,
        edited_at = null,
        zone_missing_since = null
    where s.account_id = p_account_id and s.schedule = p_schedule;
    delete from duebook.schedule_past as p
    where p.account_id = p_account_id and p.schedule = p_schedule;

    with open as materialized (
        select pg_catalog.array_agg(c.intent_id order by c.intent_id) as intent_ids
        from duebook.occurrence as c
        inner join duebook.intent as i
            on c.account_id = i.account_id and c.intent_id = i.intent_id
        where
            c.account_id = p_account_id
            and c.schedule = p_schedule
            and not exists (
                select
                from duebook.outcome as o
                where o.account_id = i.account_id and o.operation_key = i.operation_key
            )
    )
    select
        pg_catalog.count(*) filter (where e.done = 'ended'),
        pg_catalog.count(*) filter (where e.done = 'requested')
    into v_ended, v_requested
    from open as p
    cross join lateral duebook.end_waiting_intents(
        pg_catalog.array_fill(p_account_id, array[pg_catalog.cardinality(p.intent_ids)]),
        p.intent_ids,
        'cancel',
        'cancelled',
        p_reason,
        p_by
    ) as e
    where p.intent_ids is not null;

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'cancel_schedule', p_account_id, 'schedule:' || p_schedule,
        pg_catalog.jsonb_build_object(
            'reason', p_reason, 'ended', v_ended, 'requested', v_requested
        )
    );
    return query select true, v_ended, v_requested;
end;
$$;

COMMENT ON FUNCTION duebook.cancel_schedule(p_account_id text, p_schedule text, p_reason text, p_by text) IS 'Cancels a schedule: waiting occurrences end expired, cancelled; for those that a sender holds a request is appended.';

CREATE FUNCTION duebook.claim_batch(p_token uuid, p_sender text, p_channel text, p_limit integer, p_lease interval, p_max_age interval, p_safe_retry_for interval, p_due_offset interval, p_alone boolean) RETURNS TABLE(batch_id bigint, size integer, set_aside integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    c_accounts constant integer := 500;
    c_probes constant integer := 1000;
    -- From the claim to the first message; a slot that has passed is lost.
    c_lead constant interval := '50 milliseconds';
    -- Longer than a message may take; a sender that dies with it delays the others by this.
    c_probe constant interval := '30 seconds';
    v_now timestamptz := pg_catalog.clock_timestamp();
    v_due_before timestamptz := v_now + p_due_offset;
    v_limit integer := p_limit;
    v_budget duebook.budget;
    v_tokens integer;
    v_slot_from timestamptz;
    v_is_probe boolean := false;
    v_digest_most integer;
    v_backlog integer;
    v_cursor text;
    v_from text;
    v_upto text;
    v_last text;
    v_reached text;
    v_quota integer;
    v_accounts integer;
    v_probes integer;
    v_seen integer;
    v_served integer;
    v_part tid[];
    v_picked tid[] := '{}';
    v_poison_from integer;
    v_batch_id bigint;
    v_account_ids text[];
    v_intent_ids bigint[];
    v_attempt_nos integer[];
    v_due_ats timestamptz[];
    v_size integer;
    v_set_aside integer := 0;
begin
    -- Into the past it can only leave rows out.
    if p_due_offset > interval '0' and not exists (
        select from duebook.environment as e where e.is_test
    ) then
        raise exception 'a shifted clock is refused outside a database marked as test'
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    if duebook.sweep_paused_by() is not null then
        return query select null::bigint, 0, 0;
        return;
    end if;

    select b.* into v_budget from duebook.budget as b where b.channel = p_channel;
    if found and (v_budget.tokens is not null or v_budget.consecutive_pauses > 0) then
        -- Two claimers must not see the same tokens, nor both be the first after a pause.
        select b.* into v_budget from duebook.budget as b where b.channel = p_channel for update;
        v_now := pg_catalog.clock_timestamp();
        v_tokens := duebook.count_tokens(v_budget, v_now);
        v_limit := least(v_limit, v_tokens);
        v_is_probe := v_budget.consecutive_pauses > 0;
    end if;
    if v_is_probe then
        v_limit := least(v_limit, 1);
    end if;
    if v_budget.slot_spacing is not null then
        v_slot_from := greatest(v_budget.next_slot_at, v_now + c_lead);
        -- No slot beyond what half the lease can use.
        v_limit := least(
            v_limit,
            (
                extract(epoch from v_now + p_lease / 2 - v_slot_from)
                / extract(epoch from v_budget.slot_spacing)
            )::integer
        );
    end if;
    if v_budget.paused_until > v_now or v_limit <= 0 then
        return query select null::bigint, 0, 0;
        return;
    end if;

    select pg_catalog.max(k.digest_most) into v_digest_most
    from duebook.intent_kind as k
    where
        k.digest_most is not null
        and (k.channel = p_channel or p_channel = any(k.fail_over));

    if p_alone then
        select pg_catalog.array_agg(x.ctid) into v_part
        from (
            select d.ctid
            from duebook.due as d
            where
                d.channel = p_channel
                and d.due_at <= v_due_before
                and d.suspicions >= 2
            order by d.channel, d.due_at, d.intent_id
            limit 1
            for update skip locked
        ) as x;
        v_picked := coalesce(v_part, '{}');
    else
        select pg_catalog.count(*) into v_backlog
        from (
            select
            from duebook.due as d
            where
                d.channel = p_channel
                and d.due_at <= v_due_before
                and d.suspicions < 2
            order by d.channel, d.due_at, d.intent_id
            limit v_limit + 1
        ) as x;

        if v_backlog > v_limit then
            v_accounts := least(c_accounts, v_limit);
            v_quota := v_limit / v_accounts;
            if v_digest_most is not null then
                v_quota := least(greatest(v_quota, v_digest_most), v_limit);
                v_accounts := v_limit / v_quota;
            end if;
            v_probes := c_probes;
            select c.account_id into v_cursor
            from duebook.claim_cursor as c where c.channel = p_channel;
            v_from := coalesce(v_cursor, '');
            v_upto := null;
            for lap in 1..2 loop
                with recursive account as (
                    (
                        select
                            d.account_id,
                            1 as seen,
                            (d.due_at <= v_due_before)::integer as served
                        from duebook.due as d
                        where
                            d.channel = p_channel
                            and d.account_id > v_from
                            and (v_upto is null or d.account_id <= v_upto)
                            and d.suspicions < 2
                        order by d.channel, d.account_id, d.due_at
                        limit 1
                    )
                    union all
                    select
                        n.account_id,
                        a.seen + 1 as seen,
                        a.served + n.is_due as served
                    from account as a
                    cross join lateral (
                        select
                            d.account_id,
                            (d.due_at <= v_due_before)::integer as is_due
                        from duebook.due as d
                        where
                            d.channel = p_channel
                            and d.account_id > a.account_id
                            and (v_upto is null or d.account_id <= v_upto)
                            and d.suspicions < 2
                        order by d.channel, d.account_id, d.due_at
                        limit 1
                    ) as n
                    where a.seen < v_probes and a.served < v_accounts
                ),
                picked as materialized (
                    select d.ctid
                    from account as a
                    cross join lateral (
                        select due.ctid
                        from duebook.due as due
                        where
                            due.channel = p_channel
                            and due.account_id = a.account_id
                            and due.due_at <= v_due_before
                            and due.suspicions < 2
                        order by due.channel, due.account_id, due.due_at
                        limit v_quota
                        for update skip locked
                    ) as d
                )
                select
                    (select pg_catalog.array_agg(p.ctid) from picked as p),
                    (select pg_catalog.max(a.seen) from account as a),
                    (select pg_catalog.max(a.served) from account as a),
                    (select a.account_id from account as a order by a.seen desc limit 1)
                into v_part, v_seen, v_served, v_last;

                v_picked := v_picked || coalesce(v_part, '{}');
                v_probes := v_probes - coalesce(v_seen, 0);
                v_accounts := v_accounts - coalesce(v_served, 0);
                v_reached := coalesce(v_last, v_reached);
                exit when v_cursor is null or v_probes <= 0 or v_accounts <= 0;
                v_from := '';
                v_upto := v_cursor;
            end loop;
        end if;

        if pg_catalog.cardinality(v_picked) < v_limit then
            select pg_catalog.array_agg(x.ctid) into v_part
            from (
                select d.ctid
                from duebook.due as d
                where
                    d.channel = p_channel
                    and d.due_at <= v_due_before
                    and d.suspicions < 2
                    and d.ctid not in (select unnest(v_picked))
                order by d.channel, d.due_at, d.intent_id
                limit v_limit - pg_catalog.cardinality(v_picked)
                for update skip locked
            ) as x;
            v_picked := v_picked || coalesce(v_part, '{}');
        end if;
    end if;

    if
        v_digest_most is not null
        and not p_alone
        and pg_catalog.cardinality(v_picked) between 1 and v_limit - 1
    then
        select pg_catalog.array_agg(x.ctid) into v_part
        from (
            select m.ctid
            from (
                select distinct d.account_id
                from duebook.due as d
                where d.ctid = any(v_picked)
            ) as a
            cross join lateral (
                select d.ctid
                from duebook.due as d
                where
                    d.channel = p_channel
                    and d.account_id = a.account_id
                    and d.due_at <= v_due_before + (
                        select k.digest_within from duebook.intent_kind as k where k.kind = d.kind
                    )
                    and d.suspicions < 2
                    and d.ctid <> all(v_picked)
                order by d.channel, d.account_id, d.due_at
                limit v_digest_most
                for update skip locked
            ) as m
            limit v_limit - pg_catalog.cardinality(v_picked)
        ) as x;
        v_picked := v_picked || coalesce(v_part, '{}');
    end if;

    if pg_catalog.cardinality(v_picked) = 0 then
        return query select null::bigint, 0, 0;
        return;
    end if;

    v_batch_id := pg_catalog.nextval('duebook.batch_batch_id_seq');
    select coalesce(pg_catalog.min(k.max_claims), 32767) into v_poison_from
    from duebook.intent_kind as k;

    with inserted as (
        insert into duebook.attempt as a (
            account_id, intent_id, attempt_no, batch_id, position,
            due_at, tries, suspicions, safe_retry_until, claimed_at
        )
        select
            d.account_id,
            d.intent_id,
            d.claims + 1,
            v_batch_id,
            pg_catalog.row_number() over (
                order by
                    case when v_digest_most is not null then d.account_id end,
                    case
                        when v_digest_most is not null
                            then exists (
                                select
                                from duebook.intent_kind as k
                                where k.kind = d.kind and k.digest_most is not null
                            )
                    end,
                    d.due_at,
                    d.account_id,
                    d.intent_id
            ) - 1,
            d.due_at,
            d.tries,
            d.suspicions,
            d.safe_retry_until,
            v_now
        from duebook.due as d
        where
            d.ctid = any(v_picked)
            and case
                when d.claims = 0 then v_poison_from > 0
                else duebook.may_be_claimed(d.account_id, d.intent_id, d.kind, d.claims)
            end
        on conflict do nothing
        returning a.account_id, a.intent_id, a.attempt_no, a.due_at, a.position
    )
    select
        pg_catalog.array_agg(i.account_id order by i.position),
        pg_catalog.array_agg(i.intent_id order by i.position),
        pg_catalog.array_agg(i.attempt_no order by i.position),
        pg_catalog.array_agg(i.due_at order by i.position),
        pg_catalog.count(*)
    into v_account_ids, v_intent_ids, v_attempt_nos, v_due_ats, v_size
    from inserted as i;

    if v_size < pg_catalog.cardinality(v_picked) then
        v_set_aside := duebook.set_aside_due(v_picked, v_batch_id);
    end if;
    delete from duebook.due as d where d.ctid = any(v_picked);

    if v_reached is not null then
        -- Whoever can't have the row at once leaves it: it only says where the next round starts.
        if exists (
            select from duebook.claim_cursor as c where c.channel = p_channel
            for update skip locked
        ) then
            update duebook.claim_cursor as c set account_id = v_reached where c.channel = p_channel;
        else
            insert into duebook.claim_cursor (channel, account_id)
            select p_channel, v_reached
            where not exists (
                select from duebook.claim_cursor as c where c.channel = p_channel
            )
            on conflict do nothing;
        end if;
    end if;

    if v_size = 0 then
        return query select null::bigint, 0, v_set_aside;
        return;
    end if;

    if v_tokens is not null then
        update duebook.budget as b
        set
            tokens = v_tokens - v_size,
            refilled_at = duebook.counted_until(v_budget, v_now),
            next_slot_at = v_slot_from + v_size * b.slot_spacing
        where b.channel = p_channel;
    end if;
    if v_is_probe then
        update duebook.budget as b
        set paused_until = v_now + c_probe, probe_batch_id = v_batch_id
        where b.channel = p_channel;
    end if;

    v_now := pg_catalog.clock_timestamp();
    insert into duebook.batch (
        batch_id, token, sender, channel, claimed_at, lease_until, max_age_until,
        safe_retry_until, size, account_ids, intent_ids, attempt_nos, due_ats,
        slot_from, slot_spacing
    ) overriding system value
    values (
        v_batch_id, p_token, p_sender, p_channel, v_now,
        v_now + least(p_lease, p_max_age), v_now + p_max_age,
        v_now + p_safe_retry_for, v_size, v_account_ids, v_intent_ids, v_attempt_nos, v_due_ats,
        v_slot_from, case when v_slot_from is not null then v_budget.slot_spacing end
    );
    return query select v_batch_id, v_size, v_set_aside;
end;
$$;

COMMENT ON FUNCTION duebook.claim_batch(p_token uuid, p_sender text, p_channel text, p_limit integer, p_lease interval, p_max_age interval, p_safe_retry_for interval, p_due_offset interval, p_alone boolean) IS 'Claims up to p_limit due intents of one channel: due to batch, one attempt each. batch_id is null when nothing was claimed.';

CREATE FUNCTION duebook.close_incident(p_name text, p_by text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_incident duebook.incident;
    v_report jsonb;
    v_refused text[];
begin
    select i.* into v_incident
    from duebook.incident as i
    where i.name = p_name
    for update;
    if not found or v_incident.closed_at is not null then
        raise exception 'incident % is not open', p_name
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    v_report := duebook.incident_report(v_incident.incident_id);
    if v_incident.pauses_sweep and v_incident.resumed_at is null then
        v_refused := v_refused || 'not_resumed'::text;
    end if;
    if v_report -> 'differs' <> '{}' then
        v_refused := v_refused || 'differs'::text;
    end if;
    if (v_report ->> 'oldest_due_s')::numeric > (v_report ->> 'band_s')::numeric then
        v_refused := v_refused || 'oldest_due'::text;
    end if;
    if v_refused is not null then
        return v_report || pg_catalog.jsonb_build_object('refused', v_refused);
    end if;

    v_report := v_report || pg_catalog.jsonb_build_object(
        'closed_by', p_by, 'closed_at', v_report -> 'as_of', 'refused', '[]'::jsonb
    );
    update duebook.incident as i
    set
        closed_by = p_by,
        closed_at = (v_report ->> 'closed_at')::timestamptz,
        report = v_report
    where i.incident_id = v_incident.incident_id;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'close_incident', 'incident:' || p_name,
        pg_catalog.jsonb_build_object(
            'due', v_report -> 'due',
            'outcomes', v_report -> 'outcomes',
            'elsewhere', v_report -> 'elsewhere',
            'in_doubt', v_report -> 'in_doubt'
        )
    );
    return v_report;
end;
$$;

COMMENT ON FUNCTION duebook.close_incident(p_name text, p_by text) IS 'Closes an open incident with its report, unless something speaks against it, which `refused` then says. Returns the report.';

CREATE FUNCTION duebook.cohort_bucket(p_cohort text, p_account_id text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select ((
        'x' || pg_catalog.substr(
            pg_catalog.md5(p_cohort || ':' || p_account_id), 1, 8
        )
    )::bit(32)::bigint & 4294967295) % 10000;
$$;

COMMENT ON FUNCTION duebook.cohort_bucket(p_cohort text, p_account_id text) IS 'Bucket 0 to 9999 of an account in a cohort by share: first 32 bits of md5(cohort:account) modulo 10000.';

CREATE FUNCTION duebook.cohort_of(p_account_id text, p_provider_account text, p_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone) RETURNS TABLE(cohort text, cohort_version integer, mode text)
    LANGUAGE sql STABLE ROWS 1
    SET search_path TO ''
    AS $$
    select c.cohort, c.cohort_version, c.mode
    from duebook.cohort as c
    where
        c.mode is not null
        and c.stated_at < p_at
        and not exists (
            select
            from duebook.cohort as n
            where
                n.cohort = c.cohort
                and n.cohort_version > c.cohort_version
                and n.stated_at < p_at
        )
        and (c.provider_accounts is null or p_provider_account = any(c.provider_accounts))
        and (
            c.account_count is null
            or exists (
                select
                from duebook.cohort_member as m
                where m.cohort_version = c.cohort_version and m.account_id = p_account_id
            )
        )
        and (
            c.percent is null
            or duebook.cohort_bucket(c.cohort, p_account_id) < c.percent * 100
        )
        and (
            c.attribute is null
            or exists (
                select
                from duebook.contact as t
                where
                    t.account_id = p_account_id
                    and case c.attribute
                        when 'region' then t.region
                        when 'locale' then t.locale
                        else t.zone
                    end = any(c.attribute_values)
            )
        )
    order by c.place, c.cohort
    limit 1;
$$;

COMMENT ON FUNCTION duebook.cohort_of(p_account_id text, p_provider_account text, p_at timestamp with time zone) IS 'The cohort that decides for changes of an account at a provider account; no row: the provider account''s own mode.';

CREATE FUNCTION duebook.confirm_hold(p_account_id text, p_hold text, p_payment_id text DEFAULT NULL::text, p_by text DEFAULT SESSION_USER) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_fault text := duebook.name_fault(nullif(p_payment_id, ''));
begin
    if p_payment_id is not null and v_fault is not null then
        raise exception 'payment_id: %', v_fault
            using errcode = 'invalid_parameter_value', column = 'payment_id';
    end if;
    return duebook.settle_hold(p_account_id, p_hold, p_payment_id, 'live', null, p_by);
end;
$$;

COMMENT ON FUNCTION duebook.confirm_hold(p_account_id text, p_hold text, p_payment_id text, p_by text) IS 'Confirms a hold. Returns confirmed, already_confirmed, expired, cancelled, reheld or refund.';

CREATE TABLE duebook.budget (
    channel text NOT NULL,
    tokens integer,
    capacity integer,
    refill_per_minute integer,
    refilled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    paused_until timestamp with time zone,
    pause_reason text,
    consecutive_pauses integer DEFAULT 0 NOT NULL,
    slot_spacing interval,
    next_slot_at timestamp with time zone,
    probe_batch_id bigint,
    CONSTRAINT rate_is_whole_or_absent CHECK ((((tokens IS NULL) = (capacity IS NULL)) AND ((capacity IS NULL) = (refill_per_minute IS NULL)))),
    CONSTRAINT tokens_are_within_capacity CHECK (((tokens IS NULL) OR ((tokens >= 0) AND (tokens <= capacity))))
)
WITH (fillfactor='50');

COMMENT ON TABLE duebook.budget IS 'Shared rate of one channel; a channel without a row is unlimited and not paused.';

COMMENT ON COLUMN duebook.budget.channel IS 'Channel account that the rate belongs to.';

COMMENT ON COLUMN duebook.budget.tokens IS 'Messages that may be claimed now; null: no rate limit.';

COMMENT ON COLUMN duebook.budget.capacity IS 'Most tokens it can hold.';

COMMENT ON COLUMN duebook.budget.refill_per_minute IS 'Tokens added a minute.';

COMMENT ON COLUMN duebook.budget.refilled_at IS 'When tokens were last counted.';

COMMENT ON COLUMN duebook.budget.paused_until IS 'Nothing is claimed or sent before; from Retry-After or a refusal of the whole channel.';

COMMENT ON COLUMN duebook.budget.pause_reason IS 'Code of the answer that paused it.';

COMMENT ON COLUMN duebook.budget.consecutive_pauses IS 'Pauses since the last accepted message; sets the back-off.';

COMMENT ON COLUMN duebook.budget.slot_spacing IS 'Least time between the starts of two messages, whoever sends them; null: tokens may be used at once.';

COMMENT ON COLUMN duebook.budget.next_slot_at IS 'First instant that no claim has taken yet.';

COMMENT ON COLUMN duebook.budget.probe_batch_id IS 'The one batch that may send after a pause, to see whether the channel accepts again; null: none.';

CREATE FUNCTION duebook.count_tokens(p_budget duebook.budget, p_at timestamp with time zone) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        least(
            p_budget.capacity::bigint,
            p_budget.tokens + duebook.whole_tokens(p_budget, p_at)
        )::integer;
$$;

COMMENT ON FUNCTION duebook.count_tokens(p_budget duebook.budget, p_at timestamp with time zone) IS 'Tokens a budget has at an instant: what it had plus the whole tokens since, at most its capacity.';

CREATE FUNCTION duebook.counted_until(p_budget duebook.budget, p_at timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        case
            when p_at <= p_budget.refilled_at then p_at
            when
                p_budget.refill_per_minute = 0
                or p_budget.tokens + duebook.whole_tokens(p_budget, p_at) >= p_budget.capacity
                then p_at
            else
                p_budget.refilled_at
                + interval '1 minute'
                * (duebook.whole_tokens(p_budget, p_at)::double precision
                    / p_budget.refill_per_minute)
        end;
$$;

COMMENT ON FUNCTION duebook.counted_until(p_budget duebook.budget, p_at timestamp with time zone) IS 'The instant up to which the tokens of a budget are counted: the rest of a token is kept.';

CREATE FUNCTION duebook.create_hold(p_account_id text, p_hold text, p_expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, p_for interval DEFAULT NULL::interval, p_resource text DEFAULT NULL::text, p_quantity integer DEFAULT 1, p_payment_id text DEFAULT NULL::text, p_by text DEFAULT SESSION_USER) RETURNS TABLE(done text, expires_at timestamp with time zone, operation_key text)
    LANGUAGE plpgsql
    SET search_path TO ''
    SET "TimeZone" TO 'UTC'
    AS $$
#variable_conflict use_column
declare
    v_fault record;
    v_resource duebook.hold_resource;
    v_hold duebook.hold;
    v_now timestamptz;
    v_expires_at timestamptz;
    v_key text;
    v_is_new boolean := false;
begin
    select f.* into v_fault
    from duebook.hold_fault(
        p_account_id, p_hold, p_expires_at, p_for, p_resource, p_quantity, p_payment_id
    ) as f;
    if found then
        raise exception '%: %', v_fault.field, v_fault.fault
            using errcode = 'invalid_parameter_value', column = v_fault.field;
    end if;
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by)
            using errcode = 'invalid_parameter_value', column = 'by';
    end if;
    if p_resource is not null then
        v_resource := duebook.lock_hold_resource(p_resource);
    end if;

    -- Looked for under the lock: the same creation a moment ago takes no room from this one.
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold;
    if not found then
        v_now := pg_catalog.clock_timestamp();
        v_expires_at := coalesce(p_expires_at, v_now + p_for);
        if v_expires_at <= v_now then
            raise exception 'expires_at: not after now'
                using errcode = 'invalid_parameter_value', column = 'expires_at';
        end if;
        if not duebook.has_room(v_resource, p_quantity, v_now) then
            raise exception 'the resource % has no room for % more', p_resource, p_quantity
                using
                    errcode = 'check_violation',
                    constraint = 'resource_has_room',
                    detail = pg_catalog.format('Its capacity is %s.', v_resource.capacity);
        end if;
        insert into duebook.hold as n (
            account_id, hold, resource, quantity, payment_id, created_at, expires_at, held_for
        )
        values (
            p_account_id, p_hold, p_resource, p_quantity, p_payment_id, v_now, v_expires_at, p_for
        )
        on conflict (account_id, hold) do nothing
        returning n.* into v_hold;
        v_is_new := found;
        if not v_is_new then
            -- Somebody else's, committed a moment ago.
            select h.* into v_hold
            from duebook.hold as h
            where h.account_id = p_account_id and h.hold = p_hold;
        end if;
    end if;

    v_key := duebook.hold_expiry_key(v_hold.hold, v_hold.expires_at);
    if v_is_new then
        perform duebook.promise_hold_expiry(v_hold, v_key, p_by);
    elsif
        v_hold.resource is distinct from p_resource
        or v_hold.quantity <> p_quantity
        or v_hold.payment_id is distinct from coalesce(p_payment_id, v_hold.payment_id)
        or v_hold.held_for is distinct from p_for
        or v_hold.expires_at <> coalesce(p_expires_at, v_hold.expires_at)
        then
        raise exception 'hold % of this account exists with other content', p_hold
            using errcode = 'unique_violation', constraint = 'hold_pkey';
    end if;
    return query
    select
        case when v_is_new then 'created' else 'existed' end,
        v_hold.expires_at,
        v_key;
end;
$$;

COMMENT ON FUNCTION duebook.create_hold(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text, p_by text) IS 'Creates a hold with a fixed end and promises its expiry. Returns created or existed, its end and its key; other content and a full resource are refused.';

CREATE FUNCTION duebook.current_ownership(p_account_id text, p_intent_id bigint, p_ownership text) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO ''
    AS $$
    select coalesce(
        (
            select c.ownership
            from duebook.ownership_change as c
            where c.account_id = p_account_id and c.intent_id = p_intent_id
            order by c.ownership_change_id desc
            limit 1
        ),
        p_ownership
    );
$$;

COMMENT ON FUNCTION duebook.current_ownership(p_account_id text, p_intent_id bigint, p_ownership text) IS 'Whose an intent is now: its ownership, unless its key was moved by name.';

CREATE FUNCTION duebook.deal_with_discrepancy(p_provider_account text, p_kind text, p_subject text, p_act text, p_by text, p_reason text, p_assignee text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_row duebook.discrepancy;
    v_status text;
begin
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by) using errcode = 'check_violation';
    end if;
    v_status := case p_act
        when 'acknowledge' then 'acknowledged'
        when 'assign' then 'acknowledged'
        when 'resolve' then 'resolved'
        when 'ignore' then 'ignored'
        when 'write_off' then 'written_off'
        when 'reopen' then 'open'
    end;
    if v_status is null then
        raise exception
            'act: %; expected acknowledge, assign, resolve, ignore, write_off or reopen', p_act
            using errcode = 'check_violation';
    end if;
    if p_act = 'assign' and duebook.name_fault(p_assignee) is not null then
        raise exception 'assignee: %', duebook.name_fault(p_assignee)
            using errcode = 'check_violation';
    end if;
    if p_act not in ('acknowledge', 'assign') and coalesce(pg_catalog.btrim(p_reason), '') = '' then
        raise exception 'reason: empty; expected why it is to % it', pg_catalog.replace(p_act, '_', ' ')
            using errcode = 'check_violation';
    end if;

    select d.* into v_row
    from duebook.discrepancy as d
    where
        d.provider_account = p_provider_account
        and d.kind = p_kind
        and d.subject = p_subject
    for update;
    if not found then
        raise exception 'there is no discrepancy % of % at %', p_kind, p_subject, p_provider_account
            using errcode = 'no_data_found';
    end if;
    if v_row.closed_at is not null then
        raise exception 'it is gone since %: nothing is left to %',
            pg_catalog.to_char(v_row.closed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            pg_catalog.replace(p_act, '_', ' ')
            using errcode = 'check_violation';
    end if;
    if p_act = 'assign' and v_row.status not in ('open', 'acknowledged') then
        raise exception 'it is %: reopen it first', pg_catalog.replace(v_row.status, '_', ' ')
            using errcode = 'check_violation';
    end if;
    if p_act = 'acknowledge' and v_row.status not in ('open', 'acknowledged') then
        raise exception 'it is %: reopen it first', pg_catalog.replace(v_row.status, '_', ' ')
            using errcode = 'check_violation';
    end if;
    if
        v_row.status = v_status
        and (p_act <> 'assign' or v_row.assignee is not distinct from p_assignee)
    then
        return v_status;
    end if;

    update duebook.discrepancy as d
    set
        status = v_status,
        assignee = case p_act when 'assign' then p_assignee else d.assignee end,
        decided_provider_minor = d.provider_minor,
        decided_ledger_minor = d.ledger_minor,
        decided_currency = d.currency
    where
        d.provider_account = p_provider_account
        and d.kind = p_kind
        and d.subject = p_subject;
    insert into duebook.discrepancy_event (
        provider_account, kind, subject, act, actor, reason, assignee, status_before, status_after,
        provider_minor, ledger_minor, currency
    )
    values (
        p_provider_account, p_kind, p_subject, p_act, p_by, nullif(pg_catalog.btrim(p_reason), ''),
        case p_act when 'assign' then p_assignee else v_row.assignee end,
        v_row.status, v_status, v_row.provider_minor, v_row.ledger_minor, v_row.currency
    );
    return v_status;
end;
$$;

COMMENT ON FUNCTION duebook.deal_with_discrepancy(p_provider_account text, p_kind text, p_subject text, p_act text, p_by text, p_reason text, p_assignee text) IS 'What a person does with a discrepancy: acknowledge, assign, resolve, ignore, write_off or reopen. Returns its status.';

CREATE FUNCTION duebook.deciding_mode(p_mode text, p_cohort_mode text, p_notify_from timestamp with time zone) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select case
        when p_mode = 'dry_run' then 'dry_run'
        when coalesce(p_cohort_mode, p_mode) = 'live' and p_notify_from is null then 'shadow'
        else coalesce(p_cohort_mode, p_mode)
    end;
$$;

COMMENT ON FUNCTION duebook.deciding_mode(p_mode text, p_cohort_mode text, p_notify_from timestamp with time zone) IS 'Mode that decides whose a change is: the cohort''s, else the provider account''s; dry_run of the latter always wins.';

CREATE FUNCTION duebook.delete_webhook_bodies(p_before timestamp with time zone, p_limit integer) RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO ''
    AS $$
    with old as materialized (
        select b.endpoint, b.event_id, b.body_sha256
        from duebook.webhook_body as b
        where
            b.received_at < p_before
            and not exists (
                select
                from duebook.pending_event as p
                where p.event_id = b.event_id and p.endpoint = b.endpoint
            )
        limit p_limit
    ),
    gone as (
        delete from duebook.webhook_body as b
        using old as o
        where
            b.endpoint = o.endpoint
            and b.event_id = o.event_id
            and b.body_sha256 = o.body_sha256
        returning 1
    )
    select pg_catalog.count(*)::integer from gone;
$$;

COMMENT ON FUNCTION duebook.delete_webhook_bodies(p_before timestamp with time zone, p_limit integer) IS 'Deletes bodies of webhooks that were received before an instant, in bounded numbers. Returns how many.';

CREATE FUNCTION duebook.derive_intents() RETURNS TABLE(account_id text, intent_id bigint, operation_key text, kind text, subject text, payment_id text, channel text, notify_at timestamp with time zone, give_up_at timestamp with time zone, provider_account text, run_id bigint, change_id bigint, ownership text, cohort_version integer, intended_local timestamp without time zone, zone text, tzdb_version text)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    with touched as (
        select c.*, t.kind, r.mode
        from duebook.ledger_change as c
        inner join duebook.reconciliation_run as r on c.run_id = r.run_id
        cross join lateral (
            values
            (
                'payment_settled',
                c.change_kind = 'balance' and c.before_captured_minor <> c.after_captured_minor
            ),
            (
                'payment_refunded',
                c.change_kind = 'balance' and c.before_refunded_minor <> c.after_refunded_minor
            ),
            (
                'payment_disputed',
                c.change_kind = 'balance'
                and c.before_charged_back_minor <> c.after_charged_back_minor
            ),
            ('payment_missing', c.change_kind = 'missing'),
            ('payment_cleared', c.change_kind = 'cleared')
        ) as t (kind, is_touched)
        where t.is_touched and not c.is_silent
    ),
    governed as (
        select
            t.*,
            k.stated ->> 'channel' as channel,
            t.committed_at + (k.stated ->> 'notify_after')::interval as notify_at,
            (k.stated ->> 'give_up_after')::interval as give_up_after,
            (a.stated ->> 'notify_from')::timestamptz as notify_from
        from touched as t
        cross join lateral (
            select e.detail -> 'after' as stated
            from duebook.audit_event as e
            where
                e.subject = t.kind
                and e.action = 'apply_kind'
                and e.happened_at <= t.committed_at
            order by e.audit_event_id desc
            limit 1
        ) as k
        cross join lateral (
            select e.detail -> 'after' as stated
            from duebook.audit_event as e
            where
                e.subject = t.provider_account
                and e.action = 'apply_provider_account'
                and e.happened_at <= t.committed_at
            order by e.audit_event_id desc
            limit 1
        ) as a
        where (k.stated ->> 'enabled')::boolean
    )
    select
        g.account_id,
        null::bigint,
        case
            when g.change_kind = 'balance'
                then pg_catalog.concat_ws(
                    ':', g.kind, g.channel, duebook.key_part(g.provider_account),
                    duebook.key_part(g.payment_id), duebook.key_part(g.entry_id),
                    'v' || g.entry_version
                )
            else pg_catalog.concat_ws(
                ':', g.change_kind, g.channel, duebook.key_part(g.provider_account),
                duebook.key_part(g.payment_id),
                pg_catalog.to_char(g.evidence_at at time zone 'UTC', 'YYYY-MM-DD'),
                g.transition_no
            )
        end,
        g.kind,
        'payment:' || g.payment_id,
        g.payment_id,
        g.channel,
        g.notify_at,
        g.notify_at + g.give_up_after,
        g.provider_account,
        g.run_id,
        g.change_id,
        duebook.deciding_mode(g.mode, h.mode, g.notify_from),
        coalesce(h.cohort_version, 0),
        null::timestamp,
        null::text,
        null::text
    from governed as g
    left join lateral duebook.cohort_of(g.account_id, g.provider_account, g.committed_at) as h
        on true
    where g.notify_from is null or g.evidence_at >= g.notify_from
    union all
    select
        o.account_id,
        o.intent_id,
        pg_catalog.concat_ws(
            ':', 'remind', s.channel, duebook.key_part(s.schedule),
            pg_catalog.to_char(o.nominal_on, 'YYYY-MM-DD')
        ),
        s.kind,
        'schedule:' || s.schedule,
        null,
        s.channel,
        coalesce(o.due_at, o.intended_local at time zone 'UTC'),
        coalesce(o.due_at, o.intended_local at time zone 'UTC' + interval '12 hours')
        + k.give_up_after,
        null,
        null,
        null,
        'live',
        0,
        o.intended_local,
        o.zone,
        case when o.due_at is not null then o.tzdb_version end
    from duebook.occurrence as o
    inner join duebook.schedule as s on o.account_id = s.account_id and o.schedule = s.schedule
    inner join duebook.intent_kind as k on s.kind = k.kind
    where o.intent_id is not null
    union all
    select
        d.account_id,
        null,
        duebook.hold_expiry_key(d.hold, d.expires_at),
        'hold_expiry',
        'hold:' || d.hold,
        d.payment_id,
        'internal',
        d.expires_at,
        d.expires_at + interval '100 years',
        null,
        null,
        null,
        'live',
        0,
        null,
        null,
        null
    from duebook.hold as d;
$$;

COMMENT ON FUNCTION duebook.derive_intents() IS 'The intents that follow from ledger changes, occurrences and holds, with the policies that were in force then.';

CREATE TABLE duebook.batch (
    batch_id bigint NOT NULL,
    token uuid NOT NULL,
    sender text NOT NULL,
    channel text NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    max_age_until timestamp with time zone NOT NULL,
    safe_retry_until timestamp with time zone,
    flush_no integer DEFAULT 0 NOT NULL,
    window_start integer DEFAULT 0 NOT NULL,
    mark integer DEFAULT 0 NOT NULL,
    size integer NOT NULL,
    account_ids text[] NOT NULL,
    intent_ids bigint[] NOT NULL,
    attempt_nos integer[] NOT NULL,
    due_ats timestamp with time zone[] NOT NULL,
    slot_from timestamp with time zone,
    slot_spacing interval,
    CONSTRAINT arrays_are_of_one_size CHECK (((cardinality(account_ids) = size) AND (cardinality(intent_ids) = size) AND (cardinality(attempt_nos) = size) AND (cardinality(due_ats) = size))),
    CONSTRAINT mark_is_inside_the_batch CHECK (((0 <= window_start) AND (window_start <= mark) AND (mark <= size)))
)
WITH (fillfactor='50');
ALTER TABLE ONLY duebook.batch ALTER COLUMN account_ids SET STORAGE EXTERNAL;
ALTER TABLE ONLY duebook.batch ALTER COLUMN intent_ids SET STORAGE EXTERNAL;
ALTER TABLE ONLY duebook.batch ALTER COLUMN attempt_nos SET STORAGE EXTERNAL;
ALTER TABLE ONLY duebook.batch ALTER COLUMN due_ats SET STORAGE EXTERNAL;

COMMENT ON TABLE duebook.batch IS 'Enqueued: intents one sender holds under a token and a lease, in their order.';

COMMENT ON COLUMN duebook.batch.batch_id IS 'Identity.';

COMMENT ON COLUMN duebook.batch.token IS 'Fences every flush: a batch without it was rescued.';

COMMENT ON COLUMN duebook.batch.sender IS 'Who claimed it: host, process, DAG run.';

COMMENT ON COLUMN duebook.batch.channel IS 'Channel of its intents.';

COMMENT ON COLUMN duebook.batch.claimed_at IS 'When it was claimed.';

COMMENT ON COLUMN duebook.batch.lease_until IS 'From here on rescue may take it.';

COMMENT ON COLUMN duebook.batch.max_age_until IS 'A lease is never renewed beyond.';

COMMENT ON COLUMN duebook.batch.safe_retry_until IS 'Until when an idempotent channel recognises a repeat of a first try made in this batch; null: never.';

COMMENT ON COLUMN duebook.batch.flush_no IS 'Flushes applied; the next one must follow it.';

COMMENT ON COLUMN duebook.batch.window_start IS 'First position of the window that may be in I/O.';

COMMENT ON COLUMN duebook.batch.mark IS 'Positions below it may have been tried; those from it on never were.';

COMMENT ON COLUMN duebook.batch.size IS 'Intents in it.';

COMMENT ON COLUMN duebook.batch.account_ids IS 'Customer accounts, by position.';

COMMENT ON COLUMN duebook.batch.intent_ids IS 'Intents, by position.';

COMMENT ON COLUMN duebook.batch.attempt_nos IS 'Attempt numbers, by position.';

COMMENT ON COLUMN duebook.batch.due_ats IS 'Due times, by position.';

COMMENT ON COLUMN duebook.batch.slot_from IS 'When its first message may start, the others each slot_spacing later; null: at once.';

COMMENT ON COLUMN duebook.batch.slot_spacing IS 'The spacing of its budget when it was claimed.';

CREATE FUNCTION duebook.dismantle_batch(p_batch duebook.batch, p_error text) RETURNS TABLE(back_in_due integer, in_doubt integer, held integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_item record;
    v_in_doubt integer := 0;
    v_held integer := 0;
begin
    for v_item in
        select w.account_id, w.intent_id, w.attempt_no, w.ordinal <= p_batch.mark as may_be_tried
        from unnest(p_batch.account_ids, p_batch.intent_ids, p_batch.attempt_nos)
            with ordinality as w (account_id, intent_id, attempt_no, ordinal)
        where not exists (
            select
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no
        )
        order by w.account_id, w.intent_id
    loop
        begin
            if v_item.may_be_tried then
                insert into duebook.in_doubt (
                    account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
                    give_up_at, tries, claims, look_up_from
                )
                select
                    i.account_id, i.intent_id, v_item.attempt_no, p_batch.batch_id,
                    'rescue_failed', coalesce(a.due_at, i.notify_at), i.kind, i.channel,
                    i.give_up_at, coalesce(a.tries, 0), v_item.attempt_no,
                    pg_catalog.clock_timestamp()
                from duebook.intent as i
                left join duebook.attempt as a
                    on
                        i.account_id = a.account_id
                        and i.intent_id = a.intent_id
                        and a.attempt_no = v_item.attempt_no
                where i.account_id = v_item.account_id and i.intent_id = v_item.intent_id;
            else
                insert into duebook.held (
                    account_id, intent_id, cause, due_at, kind, channel, give_up_at,
                    tries, claims, detail
                )
                select
                    i.account_id, i.intent_id, 'rescue_failed', coalesce(a.due_at, i.notify_at),
                    i.kind, i.channel, i.give_up_at, coalesce(a.tries, 0), v_item.attempt_no,
                    'SQLSTATE ' || p_error
                from duebook.intent as i
                left join duebook.attempt as a
                    on
                        i.account_id = a.account_id
                        and i.intent_id = a.intent_id
                        and a.attempt_no = v_item.attempt_no
                where i.account_id = v_item.account_id and i.intent_id = v_item.intent_id;
            end if;
            if not found then
                raise exception 'no such intent' using errcode = 'no_data_found';
            end if;
            v_in_doubt := v_in_doubt + v_item.may_be_tried::integer;
            v_held := v_held + (not v_item.may_be_tried)::integer;
        exception
            when integrity_constraint_violation or data_exception or no_data_found then
                insert into duebook.audit_event (actor, action, account_id, subject, detail)
                values (
                    'rescue', 'leave_intent', v_item.account_id, 'batch:' || p_batch.batch_id,
                    pg_catalog.jsonb_build_object(
                        'intent_id', v_item.intent_id, 'attempt_no', v_item.attempt_no,
                        'sqlstate', sqlstate
                    )
                );
        end;
    end loop;
    return query select 0, v_in_doubt, v_held;
end;
$$;

COMMENT ON FUNCTION duebook.dismantle_batch(p_batch duebook.batch, p_error text) IS 'Takes apart a batch that could not be rescued as a whole, intent by intent, into in_doubt or held.';

CREATE FUNCTION duebook.doubt_batches(p_look_up_from timestamp with time zone) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with gone as (
        delete from duebook.batch as b
        returning b.*
    ),
    noted as (
        insert into duebook.batch_ended (
            batch_id, token, sender, how, flush_no, size, claimed_at, safe_retry_until
        )
        select
            g.batch_id, g.token, g.sender, 'dismantled', g.flush_no, g.size, g.claimed_at,
            g.safe_retry_until
        from gone as g
    ),
    unresulted as materialized (
        select a.*, g.channel, i.kind, i.give_up_at
        from gone as g
        cross join lateral unnest(g.account_ids, g.intent_ids, g.attempt_nos)
            as w (account_id, intent_id, attempt_no)
        inner join duebook.attempt as a
            on
                w.account_id = a.account_id
                and w.intent_id = a.intent_id
                and w.attempt_no = a.attempt_no
        inner join duebook.intent as i
            on w.account_id = i.account_id and w.intent_id = i.intent_id
        where
            not exists (
                select
                from duebook.attempt_result as r
                where
                    r.account_id = w.account_id
                    and r.intent_id = w.intent_id
                    and r.attempt_no = w.attempt_no
            )
            and not exists (
                select
                from duebook.outcome as o
                where o.account_id = i.account_id and o.operation_key = i.operation_key
            )
        order by a.account_id, a.intent_id
    ),
    back as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at, tries, claims
        )
        select
            u.account_id, u.intent_id, u.due_at, u.kind, u.channel, u.give_up_at, u.tries,
            u.attempt_no
        from unresulted as u
        where u.channel = 'internal'
        on conflict do nothing
    ),
    put as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            u.account_id, u.intent_id, u.attempt_no, u.batch_id, 'restored', u.due_at, u.kind,
            u.channel, u.give_up_at, u.tries, u.attempt_no, p_look_up_from
        from unresulted as u
        where u.channel <> 'internal'
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*)::integer from put;
$$;

COMMENT ON FUNCTION duebook.doubt_batches(p_look_up_from timestamp with time zone) IS 'Ends every live batch of a restored database; what has no result is put in doubt. Returns how many.';

CREATE FUNCTION duebook.doubt_lost_intents(p_run_id bigint, p_provider_account text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_restore duebook.restore_accepted;
    v_doubtful integer;
begin
    select r.* into v_restore
    from duebook.restore_accepted as r
    where
        p_provider_account = any(r.lost_provider_accounts)
        and not exists (
            select
            from duebook.reconciliation_run as n
            where
                n.provider_account = p_provider_account
                and n.scope = 'full'
                and n.started_at > r.accepted_at
                and n.run_id <> p_run_id
        )
    order by r.restore_id desc
    limit 1;
    if not found then
        return 0;
    end if;

    select
        duebook.put_restored_in_doubt(
            pg_catalog.array_agg(i.account_id), pg_catalog.array_agg(i.intent_id),
            v_restore.batch_id, v_restore.accepted_at
        )
    into v_doubtful
    from duebook.intent as i
    inner join duebook.ledger_change as c
        on i.account_id = c.account_id and i.change_id = c.change_id
    where
        i.run_id = p_run_id
        and i.ownership = 'live'
        and i.channel <> 'internal'
        and c.evidence_at + (i.notify_at - i.created_at) <= v_restore.accepted_at;
    return v_doubtful;
end;
$$;

COMMENT ON FUNCTION duebook.doubt_lost_intents(p_run_id bigint, p_provider_account text) IS 'Puts intents of a run in doubt that a run lost by a restore may have promised and sent. Returns how many.';

CREATE FUNCTION duebook.doubt_lost_occurrences(p_account_ids text[], p_schedules text[], p_nominal_ons date[]) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_restore duebook.restore_accepted;
    v_doubtful integer;
begin
    select r.* into v_restore
    from duebook.restore_accepted as r
    order by r.restore_id desc
    limit 1;
    if not found then
        return 0;
    end if;

    select
        duebook.put_restored_in_doubt(
            pg_catalog.array_agg(i.account_id), pg_catalog.array_agg(i.intent_id),
            v_restore.batch_id, v_restore.accepted_at
        )
    into v_doubtful
    from unnest(p_account_ids, p_schedules, p_nominal_ons) as g (account_id, schedule, nominal_on)
    inner join duebook.occurrence as c
        on
            g.account_id = c.account_id
            and g.schedule = c.schedule
            and g.nominal_on = c.nominal_on
    inner join duebook.intent as i on c.account_id = i.account_id and c.intent_id = i.intent_id
    where
        i.notify_at <= v_restore.accepted_at
        and i.created_at > v_restore.accepted_at
        and i.channel <> 'internal';
    return v_doubtful;
end;
$$;

COMMENT ON FUNCTION duebook.doubt_lost_occurrences(p_account_ids text[], p_schedules text[], p_nominal_ons date[]) IS 'Puts just written occurrences that were due before a restore was accepted in doubt. Returns how many.';

CREATE FUNCTION duebook.drop_partitions(p_before timestamp with time zone, p_is_dry_run boolean) RETURNS TABLE(partition_name text, versions bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    SET lock_timeout TO '2s'
    AS $_$
begin
    for partition_name, versions in
        select c.relname, greatest(c.reltuples, 0)::bigint
        from pg_catalog.pg_inherits as h
        inner join pg_catalog.pg_class as c on h.inhrelid = c.oid
        where
            h.inhparent = 'duebook.settlement_entry_version'::regclass
            and c.relname ~ '^settlement_entry_version_[0-9]{4}_[0-9]{2}$'
            and pg_catalog.to_timestamp(
                pg_catalog.right(c.relname, 7) || ' +00', 'YYYY_MM TZH'
            ) + interval '1 month' <= p_before
        order by c.relname
    loop
        if not p_is_dry_run then
            begin
                execute pg_catalog.format('drop table duebook.%I', partition_name);
            exception
                when lock_not_available then
                    continue;
            end;
        end if;
        return next;
    end loop;
end;
$_$;

COMMENT ON FUNCTION duebook.drop_partitions(p_before timestamp with time zone, p_is_dry_run boolean) IS 'Drops the monthly partitions of entry versions that end before an instant. Returns them.';

CREATE TABLE duebook.hold (
    account_id text NOT NULL,
    hold text NOT NULL,
    resource text,
    quantity integer DEFAULT 1 NOT NULL,
    payment_id text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    held_for interval,
    confirmed_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    expired_at timestamp with time zone,
    reheld_at timestamp with time zone,
    refunded_at timestamp with time zone,
    CONSTRAINT expiry_is_after_creation CHECK ((expires_at > created_at)),
    CONSTRAINT hold_ends_once CHECK ((num_nonnulls(confirmed_at, cancelled_at) < 2)),
    CONSTRAINT hold_is_valid CHECK (((char_length(hold) >= 1) AND (char_length(hold) <= 200))),
    CONSTRAINT late_payment_has_one_end CHECK ((num_nonnulls(confirmed_at, refunded_at) < 2)),
    CONSTRAINT late_payment_is_named CHECK (((num_nonnulls(reheld_at, refunded_at) = 0) OR (payment_id IS NOT NULL))),
    CONSTRAINT quantity_is_positive CHECK ((quantity > 0)),
    CONSTRAINT reheld_is_confirmed CHECK (((reheld_at IS NULL) OR (confirmed_at IS NOT NULL)))
);

COMMENT ON TABLE duebook.hold IS 'A reservation whose end was fixed when it was created.';

COMMENT ON COLUMN duebook.hold.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.hold.hold IS 'Name of the hold, unique for the account; stands in its operation key.';

COMMENT ON COLUMN duebook.hold.resource IS 'What it reserves; null: nothing that is counted.';

COMMENT ON COLUMN duebook.hold.quantity IS 'How much of it.';

COMMENT ON COLUMN duebook.hold.payment_id IS 'Payment that is to confirm it, or did.';

COMMENT ON COLUMN duebook.hold.created_at IS 'When it was created.';

COMMENT ON COLUMN duebook.hold.expires_at IS 'From here on it is expired to every reader, swept or not, unless it was confirmed before.';

COMMENT ON COLUMN duebook.hold.held_for IS 'How long it was asked to hold, where no instant was: what a repeated creation is compared with.';

COMMENT ON COLUMN duebook.hold.confirmed_at IS 'When it was confirmed, while it could be, or re-held.';

COMMENT ON COLUMN duebook.hold.cancelled_at IS 'When it was cancelled.';

COMMENT ON COLUMN duebook.hold.expired_at IS 'When a sweep recorded its expiry.';

COMMENT ON COLUMN duebook.hold.reheld_at IS 'When a payment after its expiry got it again, since it still could.';

COMMENT ON COLUMN duebook.hold.refunded_at IS 'When a payment after its expiry was to be refunded, since it could not be held again.';

CREATE FUNCTION duebook.end_hold_expiry(p_hold duebook.hold, p_reason text, p_why text, p_by text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_intent_id bigint;
begin
    select i.intent_id into v_intent_id
    from duebook.intent as i
    where
        i.account_id = p_hold.account_id
        and i.operation_key = duebook.hold_expiry_key(p_hold.hold, p_hold.expires_at);
    perform duebook.end_waiting_intents(
        array[p_hold.account_id], array[v_intent_id], 'cancel', p_reason, p_why, p_by
    );
end;
$$;

COMMENT ON FUNCTION duebook.end_hold_expiry(p_hold duebook.hold, p_reason text, p_why text, p_by text) IS 'Ends the waiting promise of a hold''s expiry; one that a sweep has claimed is ended by it.';

CREATE FUNCTION duebook.end_waiting_intents(p_account_ids text[], p_intent_ids bigint[], p_request text, p_reason text, p_why text, p_by text) RETURNS TABLE(account_id text, intent_id bigint, done text)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

COMMENT ON FUNCTION duebook.end_waiting_intents(p_account_ids text[], p_intent_ids bigint[], p_request text, p_reason text, p_why text, p_by text) IS 'Ends waiting intents as expired; appends a request for those that a batch holds. Returns per intent: ended, had_ended or requested.';

CREATE FUNCTION duebook.environment_refusal(p_name text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        case
            when e.name is null then 'this database was never accepted as an environment'
            when e.name <> p_name
                then pg_catalog.format(
                    'this database was accepted as environment %s, the sender runs as %s', e.name, p_name
                )
            when
                e.system_identifier <> c.system_identifier
                or e.database_oid <> d.oid
                then pg_catalog.format(
                    'this database is a copy of environment %s and was not accepted here', e.name
                )
        end
    from pg_catalog.pg_control_system() as c
    inner join pg_catalog.pg_database as d on d.datname = pg_catalog.current_database()
    left join duebook.environment as e on e.only_row;
$$;

COMMENT ON FUNCTION duebook.environment_refusal(p_name text) IS 'Why a sender of the named environment must not send from this database; null when it may.';

CREATE FUNCTION duebook.erase_person(p_account_id text, p_why text, p_by text) RETURNS TABLE(what text, rows_erased bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_count bigint;
    v_counts jsonb := '{}';
    v_schedule text;
    v_ended bigint := 0;
    v_waiting bigint[];
begin
    if
        pg_catalog.btrim(coalesce(p_why, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'an erasure states why and who asks for it'
            using errcode = 'invalid_parameter_value';
    end if;

    for v_schedule in
        select s.schedule
        from duebook.schedule as s
        where s.account_id = p_account_id and s.cancelled_at is null
        order by s.schedule
    loop
        perform duebook.cancel_schedule(p_account_id, v_schedule, p_why, p_by);
    end loop;
    select pg_catalog.array_agg(i.intent_id order by i.intent_id) into v_waiting
    from duebook.intent as i
    where
        i.account_id = p_account_id
        and i.kind <> 'hold_expiry'
        and not exists (
            select
            from duebook.outcome as o
            where o.account_id = i.account_id and o.operation_key = i.operation_key
        );
    if v_waiting is not null then
        select pg_catalog.count(*) into v_ended
        from duebook.end_waiting_intents(
            pg_catalog.array_fill(p_account_id, array[pg_catalog.cardinality(v_waiting)]),
            v_waiting, 'cancel', 'cancelled', p_why, p_by
        );
    end if;
    v_counts := v_counts || pg_catalog.jsonb_build_object('waiting_intents', v_ended);

    delete from duebook.contact as c where c.account_id = p_account_id;
    get diagnostics v_count = row_count;
    v_counts := v_counts || pg_catalog.jsonb_build_object('contacts', v_count);
    delete from duebook.failing_contact as f where f.account_id = p_account_id;

    update duebook.schedule as s
    set message = '{}'
    where s.account_id = p_account_id and s.message <> '{}';
    get diagnostics v_count = row_count;
    v_counts := v_counts || pg_catalog.jsonb_build_object('schedule_texts', v_count);

    update duebook.settlement_entry_version as v
    set body = null
    from duebook.settlement_entry as e
    where
        e.account_id = p_account_id
        and v.provider_account = e.provider_account
        and v.entry_id = e.entry_id
        and v.body is not null;
    get diagnostics v_count = row_count;
    v_counts := v_counts || pg_catalog.jsonb_build_object('provider_rows', v_count);

    update duebook.quarantined_row as q
    set raw = null, value = null
    where
        q.source_kind in ('ledger', 'contacts', 'sends')
        and (q.raw is not null or q.value is not null)
        and array[p_account_id, pg_catalog.quote_ident(p_account_id), '"' || p_account_id || '"']
        && pg_catalog.string_to_array(q.raw, ',');
    get diagnostics v_count = row_count;
    v_counts := v_counts || pg_catalog.jsonb_build_object('quarantined_rows', v_count);

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'erase_person', p_account_id, 'account:' || p_account_id,
        pg_catalog.jsonb_build_object('why', p_why, 'erased', v_counts)
    );
    return query
    select c.key, c.value::bigint
    from pg_catalog.jsonb_each_text(v_counts) as c
    order by c.key;
end;
$$;

COMMENT ON FUNCTION duebook.erase_person(p_account_id text, p_why text, p_by text) IS 'Takes out of the database what says who an account is; what was promised, sent and settled stays. Returns how many of each.';

CREATE FUNCTION duebook.expire_due(p_most integer) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    AS $$
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

COMMENT ON FUNCTION duebook.expire_due(p_most integer) IS 'Ends due intents past their limit, at most p_most of the oldest of each channel, as too_late. Returns how many.';

CREATE FUNCTION duebook.expire_holds(p_batch duebook.batch, p_from integer, p_upto integer, p_due_offset interval) RETURNS TABLE(done integer, expired integer, skipped integer, held integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

COMMENT ON FUNCTION duebook.expire_holds(p_batch duebook.batch, p_from integer, p_upto integer, p_due_offset interval) IS 'Expires the holds of some positions of a locked internal batch, and ends their promises. Returns how many ended how.';

CREATE FUNCTION duebook.expire_one_hold(p_batch duebook.batch, p_position integer, p_due_offset interval) RETURNS TABLE(done integer, expired integer, skipped integer, held integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
begin
    return query
    select e.*
    from duebook.expire_holds(p_batch, p_position, p_position + 1, p_due_offset) as e;
exception
    when transaction_rollback or insufficient_resources or object_not_in_prerequisite_state
        or operator_intervention or system_error or internal_error then
        raise;
    when others then
        return query
        with bad as (
            select w.account_id, w.intent_id, w.attempt_no, w.due_at, i.kind, i.give_up_at
            from duebook.read_batch_window(p_batch.batch_id, p_position, p_position + 1) as w
            left join duebook.intent as i
                on w.account_id = i.account_id and w.intent_id = i.intent_id
        ),
        answered as (
            insert into duebook.attempt_result (
                account_id, intent_id, attempt_no, batch_id, flush_no, result, reason, finished_at
            )
            select
                b.account_id, b.intent_id, b.attempt_no, p_batch.batch_id, p_batch.flush_no + 1,
                'held', 'gate_failed', pg_catalog.clock_timestamp()
            from bad as b
            on conflict do nothing
        ),
        kept as (
            insert into duebook.held (
                account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims,
                detail, retest_at
            )
            select
                b.account_id, b.intent_id, 'gate_failed', b.due_at, b.kind, p_batch.channel,
                b.give_up_at, 0, b.attempt_no, 'SQLSTATE ' || sqlstate,
                pg_catalog.clock_timestamp() + interval '10 minutes'
            from bad as b
            where b.kind is not null
            on conflict do nothing
        )
        select 0, 0, 0, pg_catalog.count(*)::integer from bad;
end;
$$;

COMMENT ON FUNCTION duebook.expire_one_hold(p_batch duebook.batch, p_position integer, p_due_offset interval) IS 'Expires the hold at one position of an internal batch by itself; one that can''t be is held.';

CREATE FUNCTION duebook.fail_over_refused(p_account_ids text[], p_intent_ids bigint[]) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with refused as materialized (
        select i.*, k.fail_over, k.channel as first_channel
        from unnest(p_account_ids, p_intent_ids) as w (account_id, intent_id)
        inner join duebook.intent as i
            on w.account_id = i.account_id and w.intent_id = i.intent_id
        inner join duebook.intent_kind as k on i.kind = k.kind
        where
            pg_catalog.cardinality(k.fail_over) > 0
            and i.give_up_at > pg_catalog.clock_timestamp()
            -- Whoever complained, or was stopped by a person, is not followed elsewhere.
            and not exists (
                select
                from duebook.suppression as s
                where
                    s.account_id = i.account_id
                    and s.channel = i.channel
                    and s.source <> 'provider'
            )
    ),
    moved as materialized (
        select
            r.*,
            n.channel as next_channel,
            pg_catalog.concat_ws(
                ':',
                pg_catalog.split_part(r.operation_key, ':', 1),
                n.channel,
                pg_catalog.substr(
                    r.operation_key,
                    pg_catalog.length(pg_catalog.split_part(r.operation_key, ':', 1))
                    + pg_catalog.length(pg_catalog.split_part(r.operation_key, ':', 2))
                    + 3
                )
            ) as next_key
        from refused as r
        cross join lateral (
            select f.channel
            from unnest(r.fail_over) with ordinality as f (channel, place)
            where
                f.place > coalesce(pg_catalog.array_position(r.fail_over, r.channel), 0)
                and (r.channel = r.first_channel or r.channel = any(r.fail_over))
                and exists (
                    select
                    from duebook.contact as c
                    where c.account_id = r.account_id and c.channel = f.channel
                )
                and not exists (
                    select
                    from duebook.suppression as s
                    where s.account_id = r.account_id and s.channel = f.channel
                )
                and coalesce((
                    select n.granted
                    from duebook.consent as n
                    where
                        n.account_id = r.account_id
                        and n.kind in (r.kind, '*')
                        and n.channel in (f.channel, '*')
                    order by n.decided_at desc, n.granted
                    limit 1
                ), true)
            order by f.place
            limit 1
        ) as n
    ),
    promised as (
        insert into duebook.intent as i (
            account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
            provider_account, run_id, change_id, ownership, cohort_version, intended_local, zone,
            tzdb_version
        )
        select
            m.account_id, m.next_key, m.kind, m.subject, m.payment_id, m.next_channel,
            pg_catalog.clock_timestamp(), m.give_up_at, m.provider_account, m.run_id, m.change_id,
            m.ownership, m.cohort_version, m.intended_local, m.zone, m.tzdb_version
        from moved as m
        order by m.account_id, m.next_key
        on conflict (account_id, operation_key) do nothing
        returning
            i.account_id, i.intent_id, i.operation_key, i.kind, i.channel, i.notify_at, i.give_up_at
    ),
    scheduled as (
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select p.account_id, p.intent_id, p.notify_at, p.kind, p.channel, p.give_up_at
        from promised as p
    ),
    noted as (
        insert into duebook.fail_over (account_id, intent_id, to_intent_id)
        select m.account_id, m.intent_id, p.intent_id
        from promised as p
        inner join moved as m on p.account_id = m.account_id and p.operation_key = m.next_key
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*)::integer from noted;
$$;

COMMENT ON FUNCTION duebook.fail_over_refused(p_account_ids text[], p_intent_ids bigint[]) IS 'Promises refused intents again on the next channel of their kind on which the account can be reached. Returns how many.';

CREATE FUNCTION duebook.find_lost_batches(p_batch_ids bigint[], p_tokens uuid[], p_flush_nos integer[]) RETURNS TABLE(ordinal bigint, known_flush_no integer)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select w.ordinal, coalesce(b.flush_no, e.flush_no)
    from unnest(p_batch_ids, p_tokens, p_flush_nos)
        with ordinality as w (batch_id, token, flush_no, ordinal)
    left join duebook.batch as b on w.batch_id = b.batch_id and w.token = b.token
    left join duebook.batch_ended as e on w.batch_id = e.batch_id and w.token = e.token
    where
        coalesce(greatest(b.flush_no, e.flush_no), -1) < w.flush_no
        and not exists (
            select
            from duebook.restore_accepted as r
            cross join lateral pg_catalog.jsonb_to_recordset(r.witnessed)
                as x (token uuid, flush_no integer)
            where x.token = w.token and x.flush_no >= w.flush_no
        );
$$;

COMMENT ON FUNCTION duebook.find_lost_batches(p_batch_ids bigint[], p_tokens uuid[], p_flush_nos integer[]) IS 'Which of the given windows this database does not know: it is behind what was sent.';

CREATE FUNCTION duebook.find_run_holds(p_run_id bigint) RETURNS TABLE(account_id text, hold text, resource text, payment_id text, change_id bigint)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select h.account_id, h.hold, h.resource, h.payment_id, pg_catalog.max(c.change_id)
    from duebook.ledger_change as c
    inner join duebook.hold as h on c.account_id = h.account_id and c.payment_id = h.payment_id
    where
        c.run_id = p_run_id
        and c.change_kind = 'balance'
        and c.after_status in ('settled', 'over_settled')
        and h.confirmed_at is null
        and h.cancelled_at is null
        and h.refunded_at is null
    group by h.account_id, h.hold;
$$;

COMMENT ON FUNCTION duebook.find_run_holds(p_run_id bigint) IS 'Holds that wait for a payment which a run settled in full, each with the ledger change that says so.';

CREATE FUNCTION duebook.finish_internal_batch(p_batch_id bigint, p_token uuid, p_due_offset interval) RETURNS TABLE(state text, done integer, expired integer, skipped integer, held integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_batch duebook.batch;
    v_one record;
    v_all record;
begin
    select b.* into v_batch
    from duebook.batch as b
    where b.batch_id = p_batch_id and b.token = p_token
    for update;
    if not found then
        return query
        select
            case
                when exists (
                    select
                    from duebook.batch_ended as e
                    where
                        e.batch_id = p_batch_id and e.token = p_token and e.how = 'finished'
                ) then 'repeated'
                else 'gone'
            end,
            0, 0, 0, 0;
        return;
    end if;

    begin
        select e.* into v_all
        from duebook.expire_holds(v_batch, 0, v_batch.size, p_due_offset) as e;
    exception
        when transaction_rollback or insufficient_resources or object_not_in_prerequisite_state
            or operator_intervention or system_error or internal_error then
            raise;
        when others then
            select 0 as done, 0 as expired, 0 as skipped, 0 as held into v_all;
            for v_one in
                select e.*
                from pg_catalog.generate_series(0, v_batch.size - 1) as n (place)
                cross join lateral duebook.expire_one_hold(v_batch, n.place, p_due_offset) as e
            loop
                v_all.done := v_all.done + v_one.done;
                v_all.expired := v_all.expired + v_one.expired;
                v_all.skipped := v_all.skipped + v_one.skipped;
                v_all.held := v_all.held + v_one.held;
            end loop;
    end;

    delete from duebook.batch as b where b.batch_id = p_batch_id;
    insert into duebook.batch_ended (batch_id, token, sender, how, flush_no, size, claimed_at)
    values (
        p_batch_id, p_token, v_batch.sender, 'finished', v_batch.flush_no + 1, v_batch.size,
        v_batch.claimed_at
    );
    return query select 'applied', v_all.done, v_all.expired, v_all.skipped, v_all.held;
end;
$$;

COMMENT ON FUNCTION duebook.finish_internal_batch(p_batch_id bigint, p_token uuid, p_due_offset interval) IS 'Does what an internal batch is about and ends it, in one transaction fenced by its token. Returns applied, repeated or gone, and how many ended how.';

CREATE FUNCTION duebook.force_match(p_provider_account text, p_entry_id text, p_account_id text, p_payment_id text, p_by text, p_reason text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_type text;
    v_before duebook.forced_match;
begin
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by) using errcode = 'check_violation';
    end if;
    if coalesce(pg_catalog.btrim(p_reason), '') = '' then
        raise exception 'reason: empty; expected why they belong together'
            using errcode = 'check_violation';
    end if;
    select e.entry_type into v_type
    from duebook.settlement_entry as e
    where e.provider_account = p_provider_account and e.entry_id = p_entry_id;
    if not found then
        raise exception 'there is no entry % at %', p_entry_id, p_provider_account
            using errcode = 'no_data_found';
    end if;
    if v_type = 'payout' then
        raise exception 'entry % is a payout: it is of no payment', p_entry_id
            using errcode = 'check_violation';
    end if;
    perform p.payment_id
    from duebook.ledger_payment as p
    where p.account_id = p_account_id and p.payment_id = p_payment_id;
    if not found then
        raise exception 'there is no booked payment % of account %', p_payment_id, p_account_id
            using errcode = 'no_data_found';
    end if;

    select f.* into v_before
    from duebook.forced_match as f
    where f.provider_account = p_provider_account and f.entry_id = p_entry_id
    for update;
    if
        v_before.is_active
        and (v_before.account_id, v_before.payment_id) = (p_account_id, p_payment_id)
    then
        return 'existed';
    end if;
    insert into duebook.forced_match as f (
        provider_account, entry_id, account_id, payment_id, forced_by, reason
    )
    values (p_provider_account, p_entry_id, p_account_id, p_payment_id, p_by, pg_catalog.btrim(p_reason))
    on conflict (provider_account, entry_id) do update
        set
            account_id = excluded.account_id,
            payment_id = excluded.payment_id,
            is_active = true,
            forced_by = excluded.forced_by,
            reason = excluded.reason,
            forced_at = pg_catalog.clock_timestamp(),
            applied_run_id = null;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'force_match', p_account_id, 'entry:' || p_entry_id,
        pg_catalog.jsonb_build_object(
            'provider_account', p_provider_account, 'payment_id', p_payment_id,
            'reason', pg_catalog.btrim(p_reason)
        )
    );
    return 'matched';
end;
$$;

COMMENT ON FUNCTION duebook.force_match(p_provider_account text, p_entry_id text, p_account_id text, p_payment_id text, p_by text, p_reason text) IS 'Matches an entry with a payment whatever its reference says; the next run applies it. Returns matched or existed.';

CREATE FUNCTION duebook.has_offset(p_text text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select p_text like '%:%Z' or p_text like '%:%+%' or p_text like '%:%-%';
$$;

COMMENT ON FUNCTION duebook.has_offset(p_text text) IS 'Whether a time that a file states says its own offset from UTC.';

CREATE TABLE duebook.hold_resource (
    resource text NOT NULL,
    capacity integer,
    confirmed bigint DEFAULT 0 NOT NULL,
    changes bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT capacity_is_not_negative CHECK ((capacity >= 0)),
    CONSTRAINT confirmed_is_not_negative CHECK ((confirmed >= 0)),
    CONSTRAINT resource_is_valid CHECK (((char_length(resource) >= 1) AND (char_length(resource) <= 200)))
)
WITH (fillfactor='50');

COMMENT ON TABLE duebook.hold_resource IS 'What holds reserve and how much of it there is. Whoever creates or confirms a hold of it holds this row.';

COMMENT ON COLUMN duebook.hold_resource.resource IS 'Name of the resource.';

COMMENT ON COLUMN duebook.hold_resource.capacity IS 'How much of it can be reserved and confirmed together; null: no limit.';

COMMENT ON COLUMN duebook.hold_resource.confirmed IS 'Quantity of its confirmed holds. What is still open is counted by the clock instead.';

COMMENT ON COLUMN duebook.hold_resource.changes IS 'Counts the transactions that held it: one that waited sees in every isolation level that it did.';

COMMENT ON COLUMN duebook.hold_resource.updated_at IS 'When its capacity was last set.';

CREATE FUNCTION duebook.has_room(p_resource duebook.hold_resource, p_quantity integer, p_at timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    select
        p_resource.capacity is null
        or p_resource.confirmed + p_quantity + coalesce(
            (
                select pg_catalog.sum(h.quantity)
                from duebook.hold as h
                where
                    h.resource = p_resource.resource
                    and h.expires_at > p_at
                    and h.confirmed_at is null
                    and h.cancelled_at is null
                    and h.expired_at is null
            ),
            0
        ) <= p_resource.capacity;
$$;

COMMENT ON FUNCTION duebook.has_room(p_resource duebook.hold_resource, p_quantity integer, p_at timestamp with time zone) IS 'Whether a locked resource has room for so much more; a hold that is expired by the clock takes none.';

CREATE FUNCTION duebook.hold_edited(p_account_id text, p_schedule text, p_edited_at timestamp with time zone) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with waiting as materialized (
        select d.*
        from duebook.occurrence as c
        inner join duebook.due as d on c.account_id = d.account_id and c.intent_id = d.intent_id
        where
            c.account_id = p_account_id
            and c.schedule = p_schedule
            and c.due_at > p_edited_at
        order by d.account_id, d.intent_id
        for update of d
    ),
    gone as (
        delete from duebook.due as d
        using waiting as w
        where d.account_id = w.account_id and d.intent_id = w.intent_id
    )
    insert into duebook.held (
        account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims,
        suspicions, safe_retry_until, retest_at
    )
    select
        w.account_id, w.intent_id, 'rule_edited', w.due_at, w.kind, w.channel, w.give_up_at,
        w.tries, w.claims, w.suspicions, w.safe_retry_until, w.give_up_at
    from waiting as w;
$$;

COMMENT ON FUNCTION duebook.hold_edited(p_account_id text, p_schedule text, p_edited_at timestamp with time zone) IS 'Holds what waits of a schedule whose rule was just edited, until it is computed again.';

CREATE FUNCTION duebook.hold_expiry_key(p_hold text, p_expires_at timestamp with time zone) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        pg_catalog.concat(
            'expire:hold:',
            pg_catalog.replace(pg_catalog.replace(p_hold, '%', '%25'), ':', '%3A'),
            ':',
            pg_catalog.to_char(p_expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'),
            case
                when pg_catalog.date_trunc('second', p_expires_at, 'UTC') <> p_expires_at
                    then pg_catalog.to_char(p_expires_at at time zone 'UTC', '.US')
            end,
            'Z'
        );
$$;

COMMENT ON FUNCTION duebook.hold_expiry_key(p_hold text, p_expires_at timestamp with time zone) IS 'The operation key of the expiry of a hold: expire:hold:<hold>:<expires_at>.';

CREATE FUNCTION duebook.hold_fault(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text) RETURNS TABLE(field text, fault text)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        f.field,
        f.fault
    from (
        values
        (1, 'account_id', duebook.name_fault(nullif(p_account_id, ''))),
        (2, 'hold', duebook.name_fault(nullif(p_hold, ''))),
        (
            3,
            'resource',
            case when p_resource is not null then duebook.name_fault(nullif(p_resource, '')) end
        ),
        (
            4,
            'payment_id',
            case when p_payment_id is not null then duebook.name_fault(nullif(p_payment_id, '')) end
        ),
        (
            5,
            'quantity',
            case when coalesce(p_quantity, 0) < 1 then 'expected a whole number from 1' end
        ),
        (
            6,
            'expires_at',
            case
                when pg_catalog.num_nonnulls(p_expires_at, p_for) <> 1
                    then 'expected either an instant or how long to hold'
                when not pg_catalog.isfinite(p_expires_at) then 'expected an instant'
                when p_expires_at > pg_catalog.clock_timestamp() + interval '100 years'
                    then 'more than 100 years ahead'
            end
        ),
        (
            7,
            'for',
            case
                when p_for <= interval '0' then 'expected more than nothing'
                when p_for > interval '100 years' then 'more than 100 years'
            end
        )
    ) as f (place, field, fault)
    where f.fault is not null
    order by f.place
    limit 1;
$$;

COMMENT ON FUNCTION duebook.hold_fault(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text) IS 'The first field of a hold that is to be created which is wrong, and why; no row: none.';

CREATE FUNCTION duebook.hold_state(p_hold duebook.hold, p_at timestamp with time zone) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        case
            when p_hold.reheld_at is not null then 'reheld'
            when p_hold.confirmed_at is not null then 'confirmed'
            when p_hold.refunded_at is not null then 'refunded'
            when p_hold.cancelled_at is not null then 'cancelled'
            when p_hold.expired_at is not null or p_hold.expires_at <= p_at then 'expired'
            else 'open'
        end;
$$;

COMMENT ON FUNCTION duebook.hold_state(p_hold duebook.hold, p_at timestamp with time zone) IS 'What a hold is at an instant: open, expired, confirmed, reheld, refunded or cancelled.';

CREATE FUNCTION duebook.incident_fates(p_incident_id bigint, p_as_of timestamp with time zone) RETURNS TABLE(account_id text, intent_id bigint, operation_key text, kind text, channel text, subject text, was_due_at timestamp with time zone, place text, reason text, stands_at timestamp with time zone)
    LANGUAGE sql STABLE
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    SET jit TO 'off'
    AS $$
    select
        n.account_id,
        n.intent_id,
        i.operation_key,
        i.kind,
        i.channel,
        i.subject,
        n.due_at,
        coalesce(
            o.result,
            case
                when d.due_at > p_as_of then 'later'
                when d.due_at is not null then 'due'
                when h.cause is not null then 'held'
                when u.cause is not null then 'in_doubt'
                when p.proposed_at is not null then 'proposed'
                when duebook.is_in_flight(n.account_id, n.intent_id) then 'batch'
                else 'nowhere'
            end
        ),
        coalesce(
            o.reason,
            h.cause,
            u.cause,
            case
                when d.due_at > p_as_of
                    then (
                        select c.reason
                        from duebook.intent_change as c
                        where c.account_id = n.account_id and c.intent_id = n.intent_id
                        order by c.intent_change_id desc
                        limit 1
                    )
            end
        ),
        coalesce(o.ended_at, d.due_at, h.since, u.since, p.proposed_at)
    from duebook.incident_intent as n
    left join lateral (
        select w.*
        from duebook.intent as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as i on true
    left join lateral (
        select w.*
        from duebook.outcome as w
        where w.account_id = i.account_id and w.operation_key = i.operation_key
        limit 1
    ) as o on true
    left join lateral (
        select w.due_at
        from duebook.due as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as d on true
    left join lateral (
        select
            w.cause,
            w.since
        from duebook.held as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as h on true
    left join lateral (
        select
            w.cause,
            w.since
        from duebook.in_doubt as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as u on true
    left join lateral (
        select w.proposed_at
        from duebook.proposed as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as p on true
    where n.incident_id = p_incident_id;
$$;

COMMENT ON FUNCTION duebook.incident_fates(p_incident_id bigint, p_as_of timestamp with time zone) IS 'What became of each intent that an incident noted: the place where it stands, why and since when.';

CREATE FUNCTION duebook.incident_policies(p_incident_id bigint) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    with involved as (
        select
            i.account_id,
            i.kind,
            i.channel,
            case
                when i.subject like 'schedule:%' then pg_catalog.substr(i.subject, 10)
            end as schedule
        from duebook.incident_intent as n
        inner join duebook.intent as i on n.account_id = i.account_id and n.intent_id = i.intent_id
        where n.incident_id = p_incident_id
    ),
    applied as (
        select
            v.kind,
            s.schedule is not null as is_scheduled,
            coalesce(s.catch_up, k.catch_up) as catch_up,
            coalesce(s.catch_up_window, k.catch_up_window) as catch_up_window,
            coalesce(s.max_occurrences, k.max_occurrences) as max_occurrences,
            coalesce(s.spread_per_minute, k.spread_per_minute) as spread_per_minute,
            pg_catalog.count(*) as intents,
            pg_catalog.count(distinct (s.account_id, s.schedule))
            filter (where s.schedule is not null) as schedules,
            (
                pg_catalog.array_agg(
                    distinct s.account_id || '/' || s.schedule
                    order by s.account_id || '/' || s.schedule
                ) filter (where s.schedule is not null)
            )[1:20] as schedule_names
        from involved as v
        left join duebook.schedule as s
            on v.account_id = s.account_id and v.schedule = s.schedule
        left join duebook.intent_kind as k on v.kind = k.kind
        where v.channel <> 'internal'
        group by 1, 2, 3, 4, 5, 6
        union all
        select v.kind, false, 'always', null, null, null, pg_catalog.count(*), 0, null
        from involved as v
        where v.channel = 'internal'
        group by v.kind
    )
    select
        coalesce(
            pg_catalog.jsonb_agg(
                pg_catalog.jsonb_build_object(
                    'kind', a.kind,
                    'schedules', a.schedules,
                    'schedule_names', pg_catalog.to_jsonb(coalesce(a.schedule_names, '{}')),
                    'intents', a.intents,
                    'catch_up', a.catch_up,
                    'catch_up_window_s', extract(epoch from a.catch_up_window)::bigint,
                    'max_occurrences', a.max_occurrences,
                    'spread_per_minute', a.spread_per_minute
                )
                order by
                    a.kind, a.schedules, a.catch_up, a.catch_up_window, a.max_occurrences,
                    a.spread_per_minute
            ),
            '[]'
        )
    from applied as a;
$$;

COMMENT ON FUNCTION duebook.incident_policies(p_incident_id bigint) IS 'The catch-up policies that decide about what an incident noted, of kinds and schedules, as they stand now.';

CREATE FUNCTION duebook.incident_report(p_incident_id bigint) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    with incident as (
        select
            i.*,
            pg_catalog.clock_timestamp() as at
        from duebook.incident as i
        where i.incident_id = p_incident_id
    ),
    fate as materialized (
        select
            f.*,
            f.place in ('nowhere', 'batch')
            or (
                f.place = 'due'
                and (f.stands_at <= f.was_due_at or f.stands_at < i.at - i.oldest_due_band)
            ) as differs
        from incident as i
        cross join lateral duebook.incident_fates(p_incident_id, i.at) as f
    ),
    counted as (
        select
            f.place,
            coalesce(f.reason, '') as reason,
            pg_catalog.count(*) as n
        from fate as f
        where not f.differs
        group by 1, 2
    ),
    by_reason as (
        select
            c.place,
            pg_catalog.sum(c.n) as n,
            pg_catalog.jsonb_object_agg(c.reason, c.n order by c.reason) as reasons
        from counted as c
        group by c.place
    ),
    backlog as (
        select pg_catalog.count(*) as n, pg_catalog.min(d.due_at) as oldest_at
        from duebook.due as d
        where d.due_at <= (select pg_catalog.clock_timestamp())
    )
    select
        pg_catalog.jsonb_build_object(
            'name', i.name,
            'reason', i.reason,
            'pauses_sweep', i.pauses_sweep,
            'band_s', extract(epoch from i.oldest_due_band)::bigint,
            'opened_by', i.opened_by,
            'opened_at', i.opened_at,
            'resumed_by', i.resumed_by,
            'resumed_at', i.resumed_at,
            'closed_by', i.closed_by,
            'closed_at', i.closed_at,
            'as_of', i.at,
            'lasted_s', extract(epoch from coalesce(i.closed_at, i.at) - i.opened_at)::bigint,
            'due', (select pg_catalog.count(*) from fate),
            'outcomes', pg_catalog.jsonb_build_object(
                'sent', coalesce((select r.n from by_reason as r where r.place = 'sent'), 0),
                'done', coalesce((select r.n from by_reason as r where r.place = 'done'), 0),
                'expired', coalesce(
                    (select r.reasons from by_reason as r where r.place = 'expired'), '{}'
                )
            ),
            'elsewhere', pg_catalog.jsonb_build_object(
                'held', coalesce((select r.reasons from by_reason as r where r.place = 'held'), '{}'),
                'in_doubt', coalesce(
                    (select r.n from by_reason as r where r.place = 'in_doubt'), 0
                ),
                'later', coalesce(
                    (select r.reasons from by_reason as r where r.place = 'later'), '{}'
                ),
                'due_again', coalesce((select r.n from by_reason as r where r.place = 'due'), 0),
                'proposed', coalesce(
                    (select r.n from by_reason as r where r.place = 'proposed'), 0
                )
            ),
            'differs', (
                select
                    coalesce(pg_catalog.jsonb_object_agg(x.place, x.n order by x.place), '{}')
                from (
                    select f.place, pg_catalog.count(*) as n
                    from fate as f
                    where f.differs
                    group by f.place
                ) as x
            ),
            'differing_keys', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'account_id', x.account_id,
                                'operation_key', x.operation_key,
                                'place', x.place,
                                'due_at', x.was_due_at
                            )
                            order by x.was_due_at, x.account_id, x.operation_key
                        ),
                        '[]'
                    )
                from (
                    select f.*
                    from fate as f
                    where f.differs
                    order by f.was_due_at, f.account_id, f.operation_key
                    limit 20
                ) as x
            ),
            'backlog', b.n,
            'oldest_due_s', coalesce(
                pg_catalog.round(extract(epoch from i.at - b.oldest_at), 3), 0
            ),
            'in_doubt', (select pg_catalog.count(*) from duebook.in_doubt),
            'in_doubt_keys', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'account_id', x.account_id,
                                'operation_key', x.operation_key,
                                'cause', x.cause,
                                'since', x.since
                            )
                            order by x.since, x.account_id, x.operation_key
                        ),
                        '[]'
                    )
                from (
                    select u.account_id, w.operation_key, u.cause, u.since
                    from duebook.in_doubt as u
                    left join duebook.intent as w
                        on u.account_id = w.account_id and u.intent_id = w.intent_id
                    order by u.since, u.account_id, u.intent_id
                    limit 1000
                ) as x
            ),
            'policies', case
                when i.resumed_at is null then duebook.incident_policies(i.incident_id)
                else i.policies
            end,
            'policy_changes', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'at', e.happened_at,
                                'by', e.actor,
                                'action', e.action,
                                'subject', e.subject
                            )
                            order by e.audit_event_id
                        ),
                        '[]'
                    )
                from duebook.audit_event as e
                where
                    -- By number, which is the order of writing: instants have no index of their own.
                    e.audit_event_id > (
                        select pg_catalog.max(o.audit_event_id)
                        from duebook.audit_event as o
                        where
                            o.subject = 'incident:' || i.name
                            and o.action = 'open_incident'
                    )
                    and e.action in (
                        'apply_kind', 'put_schedule', 'changed_schedule', 'edited_schedule',
                        'cancel_schedule', 'pause', 'resume'
                    )
            ),
            'pauses', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'scope', p.scope,
                                'name', p.name,
                                'mode', p.mode,
                                'by', p.paused_by,
                                'at', p.paused_at
                            )
                            order by p.scope, p.name
                        ),
                        '[]'
                    )
                from duebook.pause as p
            ),
            'samples', i.samples
        )
    from incident as i
    cross join backlog as b;
$$;

COMMENT ON FUNCTION duebook.incident_report(p_incident_id bigint) IS 'What an incident comes to, as of now: policies, what was due beside its outcomes, what differs, what is in doubt.';

CREATE FUNCTION duebook.is_in_flight(p_account_id text, p_intent_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        exists (
            select
            from duebook.attempt as a
            inner join duebook.batch as b on a.batch_id = b.batch_id
            where
                a.account_id = p_account_id
                and a.intent_id = p_intent_id
                and not exists (
                    select
                    from duebook.attempt_result as r
                    where
                        r.account_id = a.account_id
                        and r.intent_id = a.intent_id
                        and r.attempt_no = a.attempt_no
                )
        )
        or exists (
            select
            from duebook.in_doubt as u
            where u.account_id = p_account_id and u.intent_id = p_intent_id
        );
$$;

COMMENT ON FUNCTION duebook.is_in_flight(p_account_id text, p_intent_id bigint) IS 'Whether a live batch holds an attempt of the intent without a result, or it is in doubt.';

CREATE FUNCTION duebook.is_local_time(p_text text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
begin
    if p_text is null or pg_catalog.translate(p_text, '0123456789-: ', '') not in ('', 'T') then
        return false;
    end if;
    return p_text::timestamp is not null;
exception
    when data_exception then
        return false;
end;
$$;

COMMENT ON FUNCTION duebook.is_local_time(p_text text) IS 'Whether a text is a date or a date and time without zone; false for null.';

CREATE FUNCTION duebook.is_poison(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        coalesce((
            select
                p_claims >= k.max_claims
                and p_claims - (
                    select pg_catalog.count(*)
                    from duebook.attempt_result as r
                    where r.account_id = p_account_id and r.intent_id = p_intent_id
                ) >= k.max_claims
            from duebook.intent_kind as k
            where k.kind = p_kind
        ), false);
$$;

COMMENT ON FUNCTION duebook.is_poison(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) IS 'Whether an intent was claimed max_claims times without a result.';

CREATE FUNCTION duebook.is_time(p_text text) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO ''
    AS $_$
begin
    if
        p_text is null
        or pg_catalog.translate(p_text, '0123456789-: .+', '') not in ('', 'T', 'Z', 'TZ')
        or (p_text like '%.%' and p_text !~ ':[0-9]{2}[.][0-9]+ ?(Z|[+-]|$)')
    then
        return false;
    end if;
    if duebook.has_offset(p_text) then
        return p_text::timestamptz is not null;
    end if;
    return p_text::timestamp is not null;
exception
    when data_exception then
        return false;
end;
$_$;

COMMENT ON FUNCTION duebook.is_time(p_text text) IS 'Whether a text is a date, a date and time, or an instant with its offset; false for null.';

CREATE FUNCTION duebook.is_zone_name(p_zone text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $_$
begin
    if p_zone = 'UTC' then
        return true;
    end if;
    if p_zone ~ '^[A-Z][a-z]+(/[A-Z][a-z]+(_[A-Z][a-z]+)*)+$' then
        return (timestamp '2000-01-01 00:00' at time zone p_zone) is not null;
    end if;
    return exists (select from pg_catalog.pg_timezone_names as z where z.name = p_zone);
exception
    when invalid_parameter_value then
        return false;
end;
$_$;

COMMENT ON FUNCTION duebook.is_zone_name(p_zone text) IS 'Whether a text names a time zone of this server''s data; abbreviations and offsets are none.';

CREATE FUNCTION duebook.key_kind(p_operation_key text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select case pg_catalog.split_part(p_operation_key, ':', 1)
        when 'missing' then 'payment_missing'
        when 'cleared' then 'payment_cleared'
        when 'remind' then 'reminder'
        else pg_catalog.split_part(p_operation_key, ':', 1)
    end;
$$;

COMMENT ON FUNCTION duebook.key_kind(p_operation_key text) IS 'Kind of notice of an operation key, as intent_kind calls it.';

CREATE FUNCTION duebook.key_part(p_part text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select pg_catalog.replace(pg_catalog.replace(p_part, '%', '%25'), ':', '%3A');
$$;

COMMENT ON FUNCTION duebook.key_part(p_part text) IS 'One part of an operation key, escaped: % becomes %25, then : becomes %3A.';

CREATE FUNCTION duebook.lift_suppression(p_account_id text, p_channel text, p_why text, p_by text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_gone duebook.suppression;
begin
    if
        pg_catalog.btrim(coalesce(p_why, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'lifting a suppression names why and who asks for it'
            using errcode = 'invalid_parameter_value';
    end if;
    delete from duebook.suppression as s
    where s.account_id = p_account_id and s.channel = p_channel
    returning s.* into v_gone;
    if not found then
        return 'known';
    end if;
    -- The time of its failures starts anew.
    delete from duebook.failing_contact as f
    where f.account_id = p_account_id and f.channel = p_channel;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'lift_suppression', p_account_id, p_channel,
        pg_catalog.jsonb_build_object(
            'why', p_why,
            'reason', v_gone.reason,
            'source', v_gone.source,
            'suppressed_at', v_gone.suppressed_at
        )
    );
    return 'lifted';
end;
$$;

COMMENT ON FUNCTION duebook.lift_suppression(p_account_id text, p_channel text, p_why text, p_by text) IS 'Lets a channel reach an account again. Returns lifted or known.';

CREATE FUNCTION duebook.locate_intents(p_account_ids text[], p_intent_ids bigint[]) RETURNS TABLE(account_id text, intent_id bigint, place text, cause text, due_at timestamp with time zone, kind text, channel text, give_up_at timestamp with time zone, tries smallint, claims integer, suspicions smallint, safe_retry_until timestamp with time zone, batch_id bigint)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    with fact as (
        select
            i.account_id,
            i.intent_id,
            duebook.current_ownership(i.account_id, i.intent_id, i.ownership) as ownership,
            i.kind,
            i.channel,
            i.give_up_at,
            a.attempt_no,
            a.batch_id,
            a.suspicions,
            a.safe_retry_until,
            coalesce(
                case when x.changed_at >= a.claimed_at then x.due_at end,
                a.due_at, x.due_at, i.notify_at
            ) as due_at,
            coalesce(a.tries, 0)
            + coalesce(
                r.result = 'failed' or (r.result = 'unknown' and x.reason = 'repeat'), false
            )::integer as tries,
            r.result,
            r.reason,
            r.finished_at,
            x.reason not in ('edited', 'tzdb')
            and x.changed_at >= coalesce(r.finished_at, a.claimed_at) as is_back,
            a.position >= e.untried_from as is_untried,
            e.sender = 'restore accept' or e.how = 'dismantled' as is_restored,
            coalesce(
                a.safe_retry_until, e.safe_retry_until,
                case when x.reason = 'repeat' then b.safe_retry_until end
            ) as repeat_until,
            x.reason = 'repeat' as is_repeat,
            a.attempt_no is null and exists (
                select
                from duebook.occurrence as c
                where
                    c.account_id = i.account_id
                    and c.intent_id = i.intent_id
                    and c.case_of = 'unknown_zone'
            ) as is_zone_unknown
        from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        left join lateral (
            select t.*
            from duebook.attempt as t
            where t.account_id = i.account_id and t.intent_id = i.intent_id
            order by t.attempt_no desc
            limit 1
        ) as a on true
        left join duebook.attempt_result as r
            on
                a.account_id = r.account_id
                and a.intent_id = r.intent_id
                and a.attempt_no = r.attempt_no
        left join duebook.batch_ended as e on a.batch_id = e.batch_id
        left join duebook.batch as b on a.batch_id = b.batch_id
        left join lateral (
            select n.due_at, n.reason, n.changed_at
            from duebook.intent_change as n
            where n.account_id = i.account_id and n.intent_id = i.intent_id
            order by n.intent_change_id desc
            limit 1
        ) as x on true
    ),
    placed as (
        select
            f.*,
            case
                when
                    f.attempt_no is not null
                    and f.result is null
                    and f.is_untried is not true
                    and f.is_back is not true
                    and (
                        f.repeat_until is null
                        or f.repeat_until <= pg_catalog.clock_timestamp()
                    ) then 'in_doubt'
                when f.result = 'unknown' and f.is_back is not true then 'in_doubt'
                when f.ownership <> 'live' then 'proposed'
                when f.result = 'held' and f.is_back is not true then 'held'
                when f.is_zone_unknown then 'held'
                else 'due'
            end as place
        from fact as f
    )
    select
        p.account_id,
        p.intent_id,
        p.place,
        case
            when p.place = 'held' then coalesce(p.reason, 'zone_unknown')
            when p.result = 'unknown' then coalesce(p.reason, 'unknown')
            when p.is_restored then 'restored'
            when p.repeat_until is not null then 'retry_unsafe'
            else 'sender_died'
        end,
        p.due_at,
        p.kind,
        p.channel,
        p.give_up_at,
        p.tries::smallint,
        coalesce(p.attempt_no, 0),
        case
            when p.attempt_no is null then 0
            when p.result is null then p.suspicions + 1
            when p.result = 'skipped' then p.suspicions
            else 0
        end::smallint,
        case
            when p.result is null and p.is_untried is not true then p.repeat_until
            when p.result = 'unknown' and p.is_repeat then p.repeat_until
            else p.safe_retry_until
        end,
        p.batch_id
    from placed as p;
$$;

COMMENT ON FUNCTION duebook.locate_intents(p_account_ids text[], p_intent_ids bigint[]) IS 'Where intents that have not ended stand by their facts alone, with what their row there holds.';

CREATE FUNCTION duebook.lock_hold_resource(p_resource text) RETURNS duebook.hold_resource
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    insert into duebook.hold_resource as r (resource)
    values (p_resource)
    on conflict (resource) do update set changes = r.changes + 1
    returning r.*;
$$;

COMMENT ON FUNCTION duebook.lock_hold_resource(p_resource text) IS 'Holds a resource until the transaction ends, and returns it; one not named before has no limit.';

CREATE FUNCTION duebook.major_amount(p_minor bigint, p_currency character, p_provider text) RETURNS numeric
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        pg_catalog.round(
            p_minor::numeric / 10::numeric ^ x.exponent, x.exponent::integer
        )
    from duebook.currency_exponent as x
    where x.currency = p_currency and x.provider in (p_provider, '*')
    order by x.provider = '*'
    limit 1;
$$;

COMMENT ON FUNCTION duebook.major_amount(p_minor bigint, p_currency character, p_provider text) IS 'An amount in major units, exact, from minor units as this provider counts them; null for an unknown currency.';

CREATE FUNCTION duebook.make_partitions(p_months integer) RETURNS TABLE(partition_name text, done text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    SET lock_timeout TO '2s'
    AS $$
declare
    v_month timestamptz;
    v_from timestamptz;
begin
    for v_month in
        select m.at
        from pg_catalog.generate_series(0, p_months) as n (months)
        cross join lateral (
            select
                pg_catalog.date_trunc('month', pg_catalog.clock_timestamp(), 'UTC')
                + pg_catalog.make_interval(months => n.months) as at
        ) as m
    loop
        v_from := pg_catalog.date_trunc('month', v_month, 'UTC');
        partition_name := pg_catalog.to_char(
            v_from at time zone 'UTC', '"settlement_entry_version_"YYYY_MM'
        );
        continue when pg_catalog.to_regclass('duebook.' || partition_name) is not null;
        begin
            execute pg_catalog.format(
                'create table duebook.%I (like duebook.settlement_entry_version including all)',
                partition_name
            );
            execute pg_catalog.format(
                'comment on table duebook.%I is %L', partition_name,
                'Versions that were stored in ' || pg_catalog.to_char(v_from, 'YYYY-MM')
                || ' (UTC).'
            );
            execute pg_catalog.format(
                'alter table duebook.settlement_entry_version attach partition duebook.%I'
                ' for values from (%L) to (%L)',
                partition_name, v_from, v_from + interval '1 month'
            );
            done := 'made';
        exception
            when check_violation then
                done := 'the default partition holds rows of its time';
            when lock_not_available then
                done := 'the table is in use';
        end;
        return next;
    end loop;
end;
$$;

COMMENT ON FUNCTION duebook.make_partitions(p_months integer) IS 'Makes the monthly partitions of entry versions from this month to some ahead. Returns what was done of each that was not there.';

CREATE FUNCTION duebook.may_be_claimed(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        not duebook.is_in_flight(p_account_id, p_intent_id)
        and not duebook.is_poison(p_account_id, p_intent_id, p_kind, p_claims);
$$;

COMMENT ON FUNCTION duebook.may_be_claimed(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) IS 'Whether an intent that was claimed before may be claimed again: not in flight and no poison.';

CREATE FUNCTION duebook.message_fault(p_message jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO ''
    AS $_$
    select case
        when p_message is null or pg_catalog.jsonb_typeof(p_message) <> 'object'
            then 'expected an object of texts'
        when exists (
            select from pg_catalog.jsonb_each(p_message) as m
            where pg_catalog.jsonb_typeof(m.value) <> 'string'
        ) then 'expected texts only'
        when exists (
            select from pg_catalog.jsonb_object_keys(p_message) as m (name)
            where m.name !~ '^[a-z][a-z0-9_]{0,62}$' or m.name ~ '_minor$'
        ) then 'expected names of small letters, digits and _, none that ends in _minor'
        when p_message operator(pg_catalog.?|) array['account_id', 'schedule', 'occurs_on', 'occurs_at', 'zone']
            then 'account_id, schedule, occurs_on, occurs_at and zone are known anyway'
        when pg_catalog.length(p_message::text) > 20000 then 'longer than 20,000 characters'
    end;
$_$;

COMMENT ON FUNCTION duebook.message_fault(p_message jsonb) IS 'What is wrong with the texts of a schedule''s message; null: nothing.';

CREATE FUNCTION duebook.move_attempted(p_batch_id bigint, p_moves jsonb) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with moved as materialized (
        select
            m.account_id,
            m.intent_id,
            m.attempt_no,
            m.due_at,
            m.reason,
            m.detail,
            m.look_up_from,
            m.retest_at,
            m.is_repeat,
            case
                when
                    m.place in ('in_doubt', 'held')
                    and m.attempt_no > 1
                    and exists (
                        select
                        from duebook.attempt_result as r
                        where
                            r.account_id = m.account_id
                            and r.intent_id = m.intent_id
                            and r.attempt_no < m.attempt_no
                            and r.result = 'sent'
                    ) then 'due'
                when
                    m.is_repeat
                    and coalesce(a.safe_retry_until, b.safe_retry_until) > m.due_at is not true
                    then 'in_doubt'
                else m.place
            end as place,
            a.due_at as was_due_at,
            i.kind,
            i.channel,
            i.give_up_at,
            a.tries + m.burns::integer as new_tries,
            case when m.reason = 'released' then a.suspicions else 0 end as new_suspicions,
            case
                when m.is_repeat then coalesce(a.safe_retry_until, b.safe_retry_until)
                else a.safe_retry_until
            end as safe_retry_until
        from pg_catalog.jsonb_to_recordset(p_moves) as m (
            account_id text, intent_id bigint, attempt_no integer, place text,
            due_at timestamptz, reason text, detail text, burns boolean,
            look_up_from timestamptz, retest_at timestamptz, is_repeat boolean
        )
        inner join duebook.attempt as a
            on
                m.account_id = a.account_id
                and m.intent_id = a.intent_id
                and m.attempt_no = a.attempt_no
        inner join duebook.intent as i
            on m.account_id = i.account_id and m.intent_id = i.intent_id
        left join duebook.batch as b on b.batch_id = p_batch_id
    ),
    changed as (
        insert into duebook.intent_change (account_id, intent_id, due_at, reason)
        select
            m.account_id, m.intent_id, m.due_at, case when m.is_repeat then 'repeat' else m.reason end
        from moved as m
        where m.place = 'due' and m.due_at is not null
    ),
    due as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            m.account_id, m.intent_id, coalesce(m.due_at, m.was_due_at), m.kind, m.channel,
            m.give_up_at, m.new_tries, m.attempt_no, m.new_suspicions, m.safe_retry_until
        from moved as m
        where m.place = 'due'
        order by m.account_id, m.intent_id
        on conflict do nothing
    ),
    in_doubt as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            m.account_id, m.intent_id, m.attempt_no, p_batch_id, m.reason, m.was_due_at, m.kind,
            m.channel, m.give_up_at, m.new_tries, m.attempt_no,
            coalesce(m.look_up_from, pg_catalog.clock_timestamp())
        from moved as m
        where m.place = 'in_doubt'
        order by m.account_id, m.intent_id
        on conflict do nothing
    ),
    held as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, safe_retry_until, detail, retest_at
        )
        select
            m.account_id, m.intent_id, m.reason, m.was_due_at, m.kind, m.channel, m.give_up_at,
            m.new_tries, m.attempt_no, m.safe_retry_until, m.detail,
            -- Not later than its limit, at which it ends.
            least(coalesce(m.retest_at, pg_catalog.clock_timestamp()), m.give_up_at)
        from moved as m
        where m.place = 'held'
        order by m.account_id, m.intent_id
        on conflict do nothing
    )
    insert into duebook.proposed (account_id, intent_id)
    select m.account_id, m.intent_id
    from moved as m
    where m.place = 'proposed'
    order by m.account_id, m.intent_id
    on conflict do nothing;
$$;

COMMENT ON FUNCTION duebook.move_attempted(p_batch_id bigint, p_moves jsonb) IS 'Moves intents out of a batch to where their results say: due, in_doubt, held or proposed.';

CREATE FUNCTION duebook.move_key(p_account_id text, p_operation_key text, p_ownership text, p_reason text, p_by text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_intent duebook.intent;
    v_is_waiting boolean;
begin
    select i.* into v_intent
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key
    for update;
    if not found then
        return 'unknown';
    end if;
    if exists (
        select from duebook.outcome as o
        where o.account_id = p_account_id and o.operation_key = p_operation_key
    ) then
        return 'ended';
    end if;
    if p_ownership = duebook.current_ownership(
        p_account_id, v_intent.intent_id,
        case when v_intent.ownership = 'live' then 'live' else 'shadow' end
    ) then
        return 'already';
    end if;

    if p_ownership = 'live' then
        if exists (select from duebook.old_sender as s where not s.asks) then
            return 'never_asks';
        end if;
        insert into duebook.sender_key (account_id, operation_key, sender)
        values (p_account_id, p_operation_key, 'duebook')
        on conflict do nothing;
        if not found or exists (
            select
            from duebook.observed_send as s
            where
                s.account_id = p_account_id
                and (
                    s.operation_key = p_operation_key
                    or (
                        s.operation_key is null
                        and s.payment_id = v_intent.payment_id
                        and s.kind = v_intent.kind
                    )
                )
        ) then
            delete from duebook.sender_key as k
            where
                k.account_id = p_account_id
                and k.operation_key = p_operation_key
                and k.sender = 'duebook';
            return 'sent';
        end if;
        delete from duebook.proposed as p
        where p.account_id = p_account_id and p.intent_id = v_intent.intent_id;
    else
        -- What may have left us must not leave the other as well.
        if exists (
            select
            from duebook.attempt as a
            left join duebook.attempt_result as r
                on
                    a.account_id = r.account_id
                    and a.intent_id = r.intent_id
                    and a.attempt_no = r.attempt_no
            where
                a.account_id = p_account_id
                and a.intent_id = v_intent.intent_id
                and coalesce(r.result, 'unknown') = 'unknown'
        ) then
            return 'in_hand';
        end if;
        delete from duebook.due as d
        where d.account_id = p_account_id and d.intent_id = v_intent.intent_id;
        v_is_waiting := found;
        delete from duebook.held as h
        where h.account_id = p_account_id and h.intent_id = v_intent.intent_id;
        if not (v_is_waiting or found) then
            return 'in_hand';
        end if;
        delete from duebook.sender_key as k
        where
            k.account_id = p_account_id
            and k.operation_key = p_operation_key
            and k.sender = 'duebook';
    end if;

    insert into duebook.ownership_change (account_id, intent_id, ownership, moved_by, reason)
    values (p_account_id, v_intent.intent_id, p_ownership, p_by, p_reason);
    perform duebook.place_intents(array[p_account_id], array[v_intent.intent_id]);
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'move_key', p_account_id, p_operation_key,
        pg_catalog.jsonb_build_object('to', p_ownership, 'reason', p_reason)
    );
    return 'moved';
end;
$$;

COMMENT ON FUNCTION duebook.move_key(p_account_id text, p_operation_key text, p_ownership text, p_reason text, p_by text) IS 'Moves one key by name between the old sender and Duebook. Returns moved, or why not.';

CREATE FUNCTION duebook.name_fault(p_text text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        case
            when p_text is null then 'empty'
            when pg_catalog.char_length(p_text) > 200 then 'longer than 200 characters'
            when p_text ~ '[\x01-\x1f\x7f]' then 'control character'
        end;
$$;

COMMENT ON FUNCTION duebook.name_fault(p_text text) IS 'What is wrong with a text as an identifier that others gave; null: nothing.';

CREATE FUNCTION duebook.note_deliveries(p_channel text, p_failed text[], p_reached text[], p_give_up_after interval) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
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

COMMENT ON FUNCTION duebook.note_deliveries(p_channel text, p_failed text[], p_reached text[], p_give_up_after interval) IS 'Notes where the sends of a window failed, and gives up contacts where all have for so long. Returns how many.';

CREATE FUNCTION duebook.observe_webhook(p_endpoint text, p_event_id text, p_body bytea) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_sender text;
    v_data jsonb;
    v_fault text;
begin
    select s.sender into v_sender
    from duebook.old_sender as s
    where s.endpoint = p_endpoint;
    if not found then
        return false;
    end if;
    begin
        v_data := pg_catalog.convert_from(p_body, 'UTF8')::jsonb -> 'data';
        insert into duebook.observed_send (
            sender, source, external_id, account_id, operation_key, kind, channel, payment_id,
            sent_at
        )
        values (
            v_sender, 'webhook', p_event_id, v_data ->> 'account_id',
            v_data ->> 'operation_key',
            coalesce(v_data ->> 'kind', duebook.key_kind(v_data ->> 'operation_key')),
            coalesce(
                v_data ->> 'channel',
                pg_catalog.split_part(v_data ->> 'operation_key', ':', 2)
            ),
            v_data ->> 'payment_id',
            -- PostgreSQL takes yesterday, and other words, for instants.
            case
                when
                    duebook.is_time(v_data ->> 'sent_at')
                    and duebook.has_offset(v_data ->> 'sent_at')
                    then (v_data ->> 'sent_at')::timestamptz
            end
        )
        on conflict (sender, external_id) do nothing;
    exception
        when data_exception or integrity_constraint_violation then
            get stacked diagnostics v_fault = returned_sqlstate;
            insert into duebook.audit_event (actor, action, subject, detail)
            values (
                'receiver', 'send_not_readable', v_sender,
                pg_catalog.jsonb_build_object(
                    'endpoint', p_endpoint, 'event_id', p_event_id, 'sqlstate', v_fault
                )
            );
    end;
    return true;
end;
$$;

COMMENT ON FUNCTION duebook.observe_webhook(p_endpoint text, p_event_id text, p_body bytea) IS 'Records the send that an old sender tells by a webhook. Returns whether the endpoint is an old sender''s.';

CREATE FUNCTION duebook.open_incident(p_name text, p_reason text, p_oldest_due_band interval, p_pauses_sweep boolean, p_by text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_incident_id bigint;
    v_open text;
    v_recorded bigint;
begin
    insert into duebook.incident (
        name, reason, pauses_sweep, oldest_due_band, opened_by
    )
    values (p_name, p_reason, p_pauses_sweep, p_oldest_due_band, p_by)
    on conflict do nothing
    returning incident_id into v_incident_id;
    if v_incident_id is null then
        select i.name into v_open from duebook.incident as i where i.closed_at is null;
        raise exception '%', coalesce(
            'incident ' || v_open || ' is open; one at a time',
            'an incident named ' || p_name || ' was closed before; names are not used twice'
        )
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    v_recorded := duebook.record_incident_intents(v_incident_id);
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'open_incident', 'incident:' || p_name,
        pg_catalog.jsonb_build_object(
            'reason', p_reason,
            'pauses_sweep', p_pauses_sweep,
            'oldest_due_band', p_oldest_due_band,
            'due', v_recorded
        )
    );
    return v_incident_id;
end;
$$;

COMMENT ON FUNCTION duebook.open_incident(p_name text, p_reason text, p_oldest_due_band interval, p_pauses_sweep boolean, p_by text) IS 'Opens an incident, one at a time: refuses manual replay, and pauses the sweeps where asked. Returns its identity.';

CREATE FUNCTION duebook.pause_intents(p_scope text, p_name text, p_mode text, p_reason text, p_by text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_before duebook.pause;
    v_done text;
begin
    if
        pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a pause states its reason and who pauses'
            using errcode = 'invalid_parameter_value';
    end if;
    if p_scope is null or p_scope not in ('all', 'kind', 'channel', 'account') then
        raise exception 'scope: %; expected all, kind, channel or account',
            coalesce(p_scope, 'empty')
            using errcode = 'invalid_parameter_value';
    end if;
    if (p_scope = 'all') <> (p_name = '*') or p_name is null then
        raise exception 'name: %; expected * for all, else the name of a kind, channel or account',
            coalesce(p_name, 'empty')
            using errcode = 'invalid_parameter_value';
    end if;
    if p_mode is null or p_mode not in ('hold', 'drop') then
        raise exception 'mode: %; expected hold or drop', coalesce(p_mode, 'empty')
            using errcode = 'invalid_parameter_value';
    end if;
    if (p_scope, p_name) in (('channel', 'internal'), ('kind', 'hold_expiry')) then
        raise exception 'holds always expire: % % can not be paused', p_scope, p_name
            using errcode = 'invalid_parameter_value';
    end if;

    insert into duebook.pause (scope, name, mode, reason, paused_by)
    values (p_scope, p_name, p_mode, p_reason, p_by)
    on conflict do nothing;
    if found then
        v_done := 'paused';
    else
        select p.* into v_before
        from duebook.pause as p
        where p.scope = p_scope and p.name = p_name
        for update;
        if (v_before.mode, v_before.reason) is not distinct from (p_mode, p_reason) then
            return 'unchanged';
        end if;
        v_done := 'changed';
        update duebook.pause as p
        set mode = p_mode, reason = p_reason, paused_by = p_by
        where p.scope = p_scope and p.name = p_name;
    end if;

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'pause', case when p_scope = 'account' then p_name end, p_scope || ':' || p_name,
        pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'mode', p_mode, 'reason', p_reason, 'mode_before', v_before.mode
            )
        )
    );
    return v_done;
end;
$$;

COMMENT ON FUNCTION duebook.pause_intents(p_scope text, p_name text, p_mode text, p_reason text, p_by text) IS 'Pauses all intents, or those of one kind, channel or account, with mode hold or drop. Returns paused, changed or unchanged.';

CREATE FUNCTION duebook.pause_mode(p_account_id text, p_kind text, p_channel text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select p.mode
    from duebook.pause as p
    where
        (p.scope, p.name) in (
            ('all', '*'), ('kind', p_kind), ('channel', p_channel), ('account', p_account_id)
        )
    order by p.mode
    limit 1;
$$;

COMMENT ON FUNCTION duebook.pause_mode(p_account_id text, p_kind text, p_channel text) IS 'The mode in which an intent is paused now: hold or drop, null when it is not. Drop wins.';

CREATE FUNCTION duebook.place_intents(p_account_ids text[], p_intent_ids bigint[]) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with located as materialized (
        select l.* from duebook.locate_intents(p_account_ids, p_intent_ids) as l
    ),
    due as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            l.account_id, l.intent_id, l.due_at, l.kind, l.channel, l.give_up_at,
            l.tries, l.claims, l.suspicions, l.safe_retry_until
        from located as l
        where l.place = 'due'
        on conflict do nothing
    ),
    held as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            l.account_id, l.intent_id, l.cause, l.due_at, l.kind, l.channel, l.give_up_at,
            l.tries, l.claims, l.suspicions, l.safe_retry_until
        from located as l
        where l.place = 'held'
        on conflict do nothing
    ),
    in_doubt as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            l.account_id, l.intent_id, l.claims, l.batch_id, l.cause, l.due_at, l.kind, l.channel,
            l.give_up_at, l.tries, l.claims, pg_catalog.clock_timestamp()
        from located as l
        where l.place = 'in_doubt'
        on conflict do nothing
    ),
    proposed as (
        insert into duebook.proposed (account_id, intent_id)
        select l.account_id, l.intent_id
        from located as l
        where l.place = 'proposed'
        on conflict do nothing
    )
    select pg_catalog.count(*)::integer from located;
$$;

COMMENT ON FUNCTION duebook.place_intents(p_account_ids text[], p_intent_ids bigint[]) IS 'Gives intents their rows in the moving tables, where their facts say. Returns how many.';

CREATE FUNCTION duebook.plain_date(p_text text, p_order text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        case p_order
            when 'iso' then p_text
            when 'day_first'
                then pg_catalog.regexp_replace(
                    pg_catalog.regexp_replace(
                        p_text, '^([0-9]{1,2}[./-][0-9]{1,2}[./-])([0-9]{2})(?![0-9])', '\120\2'
                    ),
                    '^([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})',
                    '\3-\2-\1'
                )
            when 'month_first'
                then pg_catalog.regexp_replace(
                    pg_catalog.regexp_replace(
                        p_text, '^([0-9]{1,2}[./-][0-9]{1,2}[./-])([0-9]{2})(?![0-9])', '\120\2'
                    ),
                    '^([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})',
                    '\3-\1-\2'
                )
        end;
$$;

COMMENT ON FUNCTION duebook.plain_date(p_text text, p_order text) IS 'A date as a file writes it, year first; the order is iso, day_first or month_first.';

CREATE FUNCTION duebook.plain_number(p_text text, p_decimal text, p_thousands text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $_$
declare
    v_number text;
    v_grouped text := '';
begin
    if pg_catalog.translate(p_text, '0123456789-', '') in ('', p_decimal) then
        return pg_catalog.replace(p_text, p_decimal, '.');
    end if;
    v_number := p_text;
    if p_thousands <> '' then
        v_number := pg_catalog.replace(p_text, p_thousands, '');
        v_grouped := pg_catalog.format(
            '|[1-9][0-9]{0,2}([%1$s][0-9]{2,3})*[%1$s][0-9]{3}', p_thousands
        );
    end if;
    v_number := pg_catalog.replace(v_number, p_decimal, '.');
    if
        v_number ~ '^-?([0-9]+\.?[0-9]*|\.[0-9]+)$'
        and p_text !~ pg_catalog.format('^-?([0-9]+%s)?([%s][0-9]*)?$', v_grouped, p_decimal)
    then
        return pg_catalog.concat(p_text, ' where ', p_decimal, ' parts decimals');
    end if;
    return v_number;
end;
$_$;

COMMENT ON FUNCTION duebook.plain_number(p_text text, p_decimal text, p_thousands text) IS 'A number as a file writes it, rewritten with a point and without thousands separators.';

CREATE FUNCTION duebook.promise_hold_expiry(p_hold duebook.hold, p_key text, p_by text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with promised as (
        insert into duebook.intent (
            account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
            ownership
        )
        values (
            p_hold.account_id, p_key, 'hold_expiry', 'hold:' || p_hold.hold, p_hold.payment_id,
            'internal', p_hold.expires_at, p_hold.expires_at + interval '100 years', 'live'
        )
        returning account_id, intent_id, notify_at, kind, channel, give_up_at
    ),
    scheduled as (
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select p.account_id, p.intent_id, p.notify_at, p.kind, p.channel, p.give_up_at
        from promised as p
    )
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'create_hold', p_hold.account_id, p_key,
        pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'resource', p_hold.resource, 'quantity', p_hold.quantity
            )
        )
    );
$$;

COMMENT ON FUNCTION duebook.promise_hold_expiry(p_hold duebook.hold, p_key text, p_by text) IS 'The promise that a new hold expires: its intent, its due row, and who created it.';

CREATE TABLE duebook.ledger_change (
    account_id text NOT NULL,
    change_id bigint NOT NULL,
    payment_id text NOT NULL,
    run_id bigint NOT NULL,
    provider_account text NOT NULL,
    change_kind text NOT NULL,
    before_status text NOT NULL,
    after_status text NOT NULL,
    currency character(3) NOT NULL,
    before_captured_minor bigint NOT NULL,
    after_captured_minor bigint NOT NULL,
    before_refunded_minor bigint NOT NULL,
    after_refunded_minor bigint NOT NULL,
    before_charged_back_minor bigint NOT NULL,
    after_charged_back_minor bigint NOT NULL,
    entry_id text,
    entry_version integer,
    evidence_at timestamp with time zone NOT NULL,
    transition_no integer DEFAULT 0 NOT NULL,
    committed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_silent boolean DEFAULT false NOT NULL,
    CONSTRAINT change_has_before_and_after_that_differ CHECK (((change_kind <> 'balance'::text) OR ((((before_status IS DISTINCT FROM after_status) OR (before_captured_minor IS DISTINCT FROM after_captured_minor)) OR (before_refunded_minor IS DISTINCT FROM after_refunded_minor)) OR (before_charged_back_minor IS DISTINCT FROM after_charged_back_minor)))),
    CONSTRAINT change_kind_is_known CHECK ((change_kind = ANY (ARRAY['balance'::text, 'missing'::text, 'cleared'::text])))
);

COMMENT ON TABLE duebook.ledger_change IS 'Append-only fact: a run changed balance or status of a payment, or its settlement became missing or was cleared. Intents of reconciliation derive from it.';

COMMENT ON COLUMN duebook.ledger_change.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.ledger_change.change_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.ledger_change.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook.ledger_change.run_id IS 'Run that changed it.';

COMMENT ON COLUMN duebook.ledger_change.provider_account IS 'Provider account whose evidence changed it.';

COMMENT ON COLUMN duebook.ledger_change.change_kind IS 'balance, or the transitions missing and cleared.';

COMMENT ON COLUMN duebook.ledger_change.before_status IS 'Settled status before.';

COMMENT ON COLUMN duebook.ledger_change.after_status IS 'Settled status after.';

COMMENT ON COLUMN duebook.ledger_change.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook.ledger_change.before_captured_minor IS 'Captured before, over all provider accounts.';

COMMENT ON COLUMN duebook.ledger_change.after_captured_minor IS 'Captured after.';

COMMENT ON COLUMN duebook.ledger_change.before_refunded_minor IS 'Refunded before.';

COMMENT ON COLUMN duebook.ledger_change.after_refunded_minor IS 'Refunded after.';

COMMENT ON COLUMN duebook.ledger_change.before_charged_back_minor IS 'Charged back before.';

COMMENT ON COLUMN duebook.ledger_change.after_charged_back_minor IS 'Charged back after.';

COMMENT ON COLUMN duebook.ledger_change.entry_id IS 'Last entry, in source order, among those the run applied to the payment; null for a transition.';

COMMENT ON COLUMN duebook.ledger_change.entry_version IS 'Version of that entry.';

COMMENT ON COLUMN duebook.ledger_change.evidence_at IS 'When the evidence occurred; for a transition when the payment was expected.';

COMMENT ON COLUMN duebook.ledger_change.transition_no IS 'Counts missing and cleared transitions of the payment; 0 for a balance.';

COMMENT ON COLUMN duebook.ledger_change.committed_at IS 'When it was written.';

COMMENT ON COLUMN duebook.ledger_change.is_silent IS 'True: told to nobody, whatever kinds are enabled (a withdrawal, evidence that moved from a payment that was told).';

CREATE FUNCTION duebook.promise_hold_refund(p_hold duebook.hold, p_payment_id text, p_ownership text, p_change duebook.ledger_change) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_kind duebook.intent_kind;
    v_ownership text := p_ownership;
    v_cohort_version integer := 0;
begin
    select k.* into v_kind from duebook.intent_kind as k where k.kind = 'hold_refund';
    if not found and p_change.run_id is null then
        raise exception 'the kind hold_refund is not in the database: apply duebook.toml'
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    if v_kind.enabled is not true then
        return false;
    end if;

    if p_change.run_id is not null then
        select
            duebook.deciding_mode(p_ownership, c.mode, a.notify_from), coalesce(c.cohort_version, 0)
        into v_ownership, v_cohort_version
        from duebook.provider_account as a
        left join
            lateral duebook.cohort_of(p_hold.account_id, a.provider_account) as c on true
        where a.provider_account = p_change.provider_account;
    end if;

    with clock as materialized (
        select pg_catalog.clock_timestamp() + v_kind.notify_after as notify_at
    ),
    promised as (
        insert into duebook.intent (
            account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
            provider_account, run_id, change_id, ownership, cohort_version
        )
        select
            p_hold.account_id,
            pg_catalog.concat_ws(
                ':', 'hold_refund', v_kind.channel, 'hold', duebook.key_part(p_payment_id),
                duebook.key_part(p_hold.hold), 'v1'
            ),
            'hold_refund', 'hold:' || p_hold.hold, p_payment_id, v_kind.channel,
            c.notify_at, c.notify_at + v_kind.give_up_after,
            p_change.provider_account, p_change.run_id, p_change.change_id, v_ownership,
            v_cohort_version
        from clock as c
        on conflict (account_id, operation_key) do nothing
        returning account_id, intent_id, notify_at, kind, channel, give_up_at
    ),
    scheduled as (
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select p.account_id, p.intent_id, p.notify_at, p.kind, p.channel, p.give_up_at
        from promised as p
        where v_ownership = 'live'
    )
    insert into duebook.proposed (account_id, intent_id)
    select p.account_id, p.intent_id
    from promised as p
    where v_ownership <> 'live';
    return true;
end;
$$;

COMMENT ON FUNCTION duebook.promise_hold_refund(p_hold duebook.hold, p_payment_id text, p_ownership text, p_change duebook.ledger_change) IS 'The promise to tell of a refund for a payment that came after its hold had expired; once per payment and hold. Returns whether it is promised.';

CREATE FUNCTION duebook.put_restored_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_batch_id bigint, p_look_up_from timestamp with time zone) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
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

COMMENT ON FUNCTION duebook.put_restored_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_batch_id bigint, p_look_up_from timestamp with time zone) IS 'Puts due and held intents that may have been sent before a restore in doubt, each with its lost attempt. Returns how many.';

CREATE FUNCTION duebook.put_schedule(p_account_id text, p_schedule text, p_kind text, p_frequency text, p_zone text, p_wall_time time without time zone, p_absent text, p_gap text, p_overlap text, p_starts_on date, p_catch_up text, p_catch_up_window interval, p_max_occurrences integer, p_spread_per_minute integer, p_by text, p_weekdays integer[] DEFAULT NULL::integer[], p_month_day integer DEFAULT NULL::integer, p_nth integer DEFAULT NULL::integer, p_every integer DEFAULT 1, p_business_shift text DEFAULT 'none'::text, p_holiday_calendar text DEFAULT NULL::text, p_ends_on date DEFAULT NULL::date, p_count integer DEFAULT NULL::integer, p_message jsonb DEFAULT '{}'::jsonb, p_channel text DEFAULT NULL::text, p_replace boolean DEFAULT false) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    c_state constant text[] := array[
        'rule_version', 'next_on', 'next_at', 'put_at', 'put_by', 'edited_at', 'cancelled_at',
        'cancelled_by', 'zone_missing_since'
    ];
    c_policy constant text[] := array[
        'catch_up', 'catch_up_window', 'max_occurrences', 'spread_per_minute', 'message'
    ];
    v_now timestamptz := pg_catalog.clock_timestamp();
    v_old duebook.schedule;
    v_new duebook.schedule;
    v_fault text[];
    v_before jsonb;
    v_after jsonb;
    v_done text := 'put';
begin
    v_new.account_id := p_account_id;
    v_new.schedule := p_schedule;
    v_new.kind := p_kind;
    v_new.channel := coalesce(
        p_channel, (select k.channel from duebook.intent_kind as k where k.kind = p_kind)
    );
    v_new.frequency := p_frequency;
    -- Out of smallint's range is a fault of the field, not of the cast.
    v_new.every := case when p_every between 0 and 1001 then p_every else 0 end;
    v_new.weekdays := (
        select pg_catalog.array_agg(distinct case when d between 0 and 8 then d else 0 end)
        from unnest(p_weekdays) as w (d)
    );
    if p_weekdays is not null and v_new.weekdays is null then
        v_new.weekdays := '{}';
    end if;
    v_new.month_day := case
        when p_month_day is null or p_month_day between -1 and 31 then p_month_day
        else 0
    end;
    v_new.nth := case when p_nth is null or p_nth between -1 and 5 then p_nth else 0 end;
    v_new.business_shift := p_business_shift;
    v_new.holiday_calendar := p_holiday_calendar;
    v_new.zone := p_zone;
    v_new.wall_time := p_wall_time;
    v_new.absent := p_absent;
    v_new.gap := p_gap;
    v_new.overlap := p_overlap;
    v_new.starts_on := p_starts_on;
    v_new.ends_on := p_ends_on;
    v_new.occurrence_count := p_count;
    v_new.catch_up := p_catch_up;
    v_new.catch_up_window := p_catch_up_window;
    v_new.max_occurrences := p_max_occurrences;
    v_new.spread_per_minute := p_spread_per_minute;
    v_new.message := coalesce(p_message, '{}');
    v_new.put_by := p_by;
    v_fault := duebook.schedule_fault(v_new);
    if v_fault is not null then
        raise exception 'schedule: %: %', v_fault[1], v_fault[2]
            using errcode = 'invalid_parameter_value', detail = v_fault[1], column = v_fault[1];
    end if;

    v_new.rule_version := 1;
    v_new.put_at := v_now;
    v_new.next_on := greatest(p_starts_on, (v_now at time zone p_zone)::date);
    -- The first sweep computes it; a shift to an earlier business day stays within two weeks.
    v_new.next_at := greatest(v_now, (v_new.next_on - 15)::timestamp at time zone 'UTC');

    -- Of two at once one inserts, and the other one sees its row.
    insert into duebook.schedule as s select v_new.* on conflict do nothing;
    if found then
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        values (
            p_by, 'put_schedule', p_account_id, 'schedule:' || p_schedule,
            pg_catalog.jsonb_build_object('after', pg_catalog.to_jsonb(v_new) - c_state - 'message')
        );
        return 'put';
    end if;

    select s.* into strict v_old
    from duebook.schedule as s
    where s.account_id = p_account_id and s.schedule = p_schedule
    for update;
    v_now := pg_catalog.clock_timestamp();
    v_before := pg_catalog.to_jsonb(v_old) - c_state;
    v_after := pg_catalog.to_jsonb(v_new) - c_state;
    if v_old.cancelled_at is null and v_before = v_after then
        return 'unchanged';
    end if;
    if not p_replace then
        raise exception 'schedule: % of account % %', p_schedule, p_account_id, case
            when v_old.cancelled_at is null then 'was put with other content'
            else 'was cancelled'
        end
            using
                errcode = 'unique_violation',
                detail = coalesce((
                    select pg_catalog.string_agg(a.key, ', ' order by a.key)
                    from pg_catalog.jsonb_each(v_after) as a
                    where a.value is distinct from v_before -> a.key
                ), 'cancelled_at'),
                hint = 'replace it, or take another name';
    end if;
    if v_old.kind <> v_new.kind or v_old.channel <> v_new.channel then
        raise exception 'schedule: %: stands in what was promised already',
            case when v_old.kind <> v_new.kind then 'kind' else 'channel' end
            using
                errcode = 'invalid_parameter_value',
                detail = case when v_old.kind <> v_new.kind then 'kind' else 'channel' end,
                hint = 'cancel it and put another one';
    end if;

    v_new.put_at := v_now;
    v_new.rule_version := v_old.rule_version;
    v_new.edited_at := v_old.edited_at;
    if v_old.cancelled_at is not null then
        v_new.rule_version := v_old.rule_version + 1;
    elsif v_before - c_policy = v_after - c_policy then
        v_done := 'changed';
        v_new.put_at := v_old.put_at;
        v_new.next_on := v_old.next_on;
        v_new.next_at := v_old.next_at;
        v_new.zone_missing_since := v_old.zone_missing_since;
    else
        v_done := 'edited';
        v_new.rule_version := v_old.rule_version + 1;
        v_new.edited_at := v_now;
        if v_old.next_at <= v_now then
            -- Nobody swept for longer than the horizon: those dates are still the old rule's.
            insert into duebook.schedule_past (account_id, schedule, rule_version, rule, ended_at)
            values (
                p_account_id, p_schedule, v_old.rule_version, pg_catalog.to_jsonb(v_old), v_now
            );
        end if;
    end if;
    update duebook.schedule as s
    set
        frequency = v_new.frequency,
        every = v_new.every,
        weekdays = v_new.weekdays,
        month_day = v_new.month_day,
        nth = v_new.nth,
        business_shift = v_new.business_shift,
        holiday_calendar = v_new.holiday_calendar,
        zone = v_new.zone,
        wall_time = v_new.wall_time,
        absent = v_new.absent,
        gap = v_new.gap,
        overlap = v_new.overlap,
        starts_on = v_new.starts_on,
        ends_on = v_new.ends_on,
        occurrence_count = v_new.occurrence_count,
        catch_up = v_new.catch_up,
        catch_up_window = v_new.catch_up_window,
        max_occurrences = v_new.max_occurrences,
        spread_per_minute = v_new.spread_per_minute,
        message = v_new.message,
        rule_version = v_new.rule_version,
        next_on = v_new.next_on,
        next_at = v_new.next_at,
        put_at = v_new.put_at,
        put_by = v_new.put_by,
        edited_at = v_new.edited_at,
        cancelled_at = null,
        cancelled_by = null,
        zone_missing_since = v_new.zone_missing_since
    where s.account_id = p_account_id and s.schedule = p_schedule;
    if v_done = 'edited' then
        perform duebook.hold_edited(p_account_id, p_schedule, v_now);
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by,
        case v_done when 'put' then 'put_schedule' else v_done || '_schedule' end,
        p_account_id,
        'schedule:' || p_schedule,
        pg_catalog.jsonb_build_object(
            'before', v_before - 'message',
            'after', v_after - 'message',
            'message_changed', v_before -> 'message' is distinct from v_after -> 'message'
        )
    );
    return v_done;
end;
$$;

COMMENT ON FUNCTION duebook.put_schedule(p_account_id text, p_schedule text, p_kind text, p_frequency text, p_zone text, p_wall_time time without time zone, p_absent text, p_gap text, p_overlap text, p_starts_on date, p_catch_up text, p_catch_up_window interval, p_max_occurrences integer, p_spread_per_minute integer, p_by text, p_weekdays integer[], p_month_day integer, p_nth integer, p_every integer, p_business_shift text, p_holiday_calendar text, p_ends_on date, p_count integer, p_message jsonb, p_channel text, p_replace boolean) IS 'Puts a schedule. Returns put, unchanged, changed (policy or message) or edited (the rule); other content is refused without p_replace.';

CREATE FUNCTION duebook.read_batch_window(p_batch_id bigint, p_from integer, p_upto integer) RETURNS TABLE(account_id text, intent_id bigint, attempt_no integer, due_at timestamp with time zone, batch_id bigint, batch_position bigint)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select w.account_id, w.intent_id, w.attempt_no, w.due_at, b.batch_id, w.ordinal + p_from - 1
    from duebook.batch as b
    cross join lateral unnest(
        b.account_ids[p_from + 1:p_upto],
        b.intent_ids[p_from + 1:p_upto],
        b.attempt_nos[p_from + 1:p_upto],
        b.due_ats[p_from + 1:p_upto]
    ) with ordinality as w (account_id, intent_id, attempt_no, due_at, ordinal)
    where b.batch_id = p_batch_id;
$$;

COMMENT ON FUNCTION duebook.read_batch_window(p_batch_id bigint, p_from integer, p_upto integer) IS 'The intents at the positions [p_from, p_upto) of a batch, in their order.';

CREATE FUNCTION duebook.rebuild_intents(p_by text) RETURNS TABLE(account_id text, operation_key text, done text)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
begin
    drop table if exists pg_temp.derived, pg_temp.remade;
    create temporary table derived on commit drop as
    select distinct on (d.account_id, d.operation_key) d.*
    from duebook.derive_intents() as d
    order by d.account_id, d.operation_key, d.change_id;
    analyze pg_temp.derived;

    create temporary table remade on commit drop as
    select d.account_id, d.operation_key, 'made' as done, pg_catalog.to_jsonb(d) as content
    from pg_temp.derived as d
    left join duebook.intent as i
        on d.account_id = i.account_id and d.operation_key = i.operation_key
    left join duebook.outcome as o
        on d.account_id = o.account_id and d.operation_key = o.operation_key
    where
        i.intent_id is null
        and o.operation_key is null
        and not exists (
            select
            from duebook.attempt as a
            where
                a.account_id = d.account_id
                and not exists (
                    select
                    from duebook.intent as n
                    where n.account_id = a.account_id and n.intent_id = a.intent_id
                )
                and not exists (
                    select
                    from duebook.outcome as e
                    where e.account_id = a.account_id and e.intent_id = a.intent_id
                )
        )
    union all
    select i.account_id, i.operation_key, 'removed', pg_catalog.to_jsonb(i)
    from duebook.intent as i
    left join duebook.outcome as o
        on i.account_id = o.account_id and i.operation_key = o.operation_key
    where
        i.change_id is not null
        and i.operation_key not like 'resend:%'
        and i.kind <> 'hold_refund'
        and o.operation_key is null
        and not exists (
            select
            from duebook.attempt as a
            where a.account_id = i.account_id and a.intent_id = i.intent_id
        )
        and not exists (
            select
            from duebook.ledger_change as c
            where
                c.account_id = i.account_id
                and c.change_id = i.change_id
                and c.payment_id = i.payment_id
        );

    delete from duebook.intent as i
    using pg_temp.remade as r
    where
        r.done = 'removed'
        and i.account_id = r.account_id
        and i.operation_key = r.operation_key;
    insert into duebook.intent (
        account_id, intent_id, operation_key, kind, subject, payment_id, channel, notify_at,
        give_up_at, provider_account, run_id, change_id, ownership, cohort_version,
        intended_local, zone, tzdb_version
    ) overriding system value
    select
        d.account_id,
        coalesce(d.intent_id, pg_catalog.nextval('duebook.intent_intent_id_seq')),
        d.operation_key, d.kind, d.subject, d.payment_id, d.channel, d.notify_at, d.give_up_at,
        d.provider_account, d.run_id, d.change_id,
        case when k.sender <> 'duebook' then 'shadow' else d.ownership end,
        d.cohort_version, d.intended_local, d.zone, d.tzdb_version
    from pg_temp.remade as r
    inner join pg_temp.derived as d
        on r.account_id = d.account_id and r.operation_key = d.operation_key
    left join duebook.sender_key as k
        on d.account_id = k.account_id and d.operation_key = k.operation_key
    where r.done = 'made';

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    select
        p_by, 'rebuild_intent', r.account_id, r.operation_key,
        pg_catalog.jsonb_build_object('done', r.done, 'intent', r.content)
    from pg_temp.remade as r;
    return query
    select r.account_id, r.operation_key, r.done
    from pg_temp.remade as r
    order by r.account_id, r.operation_key;
end;
$$;

COMMENT ON FUNCTION duebook.rebuild_intents(p_by text) IS 'Makes intents again that follow from the facts and are not there, and takes away those that follow from none. Returns them.';

CREATE FUNCTION duebook.rebuild_moving(p_by text) RETURNS TABLE(account_id text, intent_id bigint, operation_key text, was text[], place text)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
begin
    drop table if exists pg_temp.standing, pg_temp.rebuilt;
    create temporary table standing on commit drop as
    select s.account_id, s.intent_id, pg_catalog.array_agg(s.place order by s.place) as places
    from (
        select d.account_id, d.intent_id, 'due' as place from duebook.due as d
        union all
        select h.account_id, h.intent_id, 'held' from duebook.held as h
        union all
        select u.account_id, u.intent_id, 'in_doubt' from duebook.in_doubt as u
        union all
        select p.account_id, p.intent_id, 'proposed' from duebook.proposed as p
        union all
        select w.account_id, w.intent_id, 'batch'
        from duebook.batch as b
        cross join lateral unnest(b.account_ids, b.intent_ids, b.attempt_nos)
            as w (account_id, intent_id, attempt_no)
        where not exists (
            select
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no
        )
    ) as s
    group by s.account_id, s.intent_id;
    analyze pg_temp.standing;

    create temporary table rebuilt on commit drop as
    select f.*
    from (
        select
            coalesce(i.account_id, s.account_id) as account_id,
            coalesce(i.intent_id, s.intent_id) as intent_id,
            i.operation_key,
            coalesce(s.places, '{}') as was,
            o.operation_key is not null as has_outcome,
            e.attempt_no as ending_attempt_no
        from duebook.intent as i
        full join pg_temp.standing as s
            on i.account_id = s.account_id and i.intent_id = s.intent_id
        left join duebook.outcome as o
            on i.account_id = o.account_id and i.operation_key = o.operation_key
        -- One that ended the key: also a late one, where a provider accepted it.
        left join (
            select distinct on (r.account_id, r.intent_id)
                r.account_id, r.intent_id, r.attempt_no
            from duebook.attempt_result as r
            where r.result = 'sent' or (r.result in ('done', 'expired') and not r.is_late)
            order by r.account_id, r.intent_id, r.result = 'sent' desc, r.attempt_no
        ) as e on i.account_id = e.account_id and i.intent_id = e.intent_id
    ) as f
    where
        case
            when f.operation_key is null then true
            when f.has_outcome then f.was <> '{}' and f.was <> '{batch}'
            else
                pg_catalog.cardinality(f.was) <> 1
                or (f.ending_attempt_no is not null and f.was <> '{batch}')
        end;
    alter table pg_temp.rebuilt add column place text;
    analyze pg_temp.rebuilt;

    update pg_temp.rebuilt as b
    set
        place = case
            when b.operation_key is null then 'nowhere'
            when 'batch' = any(b.was) then 'batch'
            when b.has_outcome or b.ending_attempt_no is not null then 'outcome'
            when 'in_doubt' = any(b.was) then 'in_doubt'
        end;
    update pg_temp.rebuilt as b
    set place = l.place
    from (
        select n.*
        from (
            select
                pg_catalog.array_agg(r.account_id) as account_ids,
                pg_catalog.array_agg(r.intent_id) as intent_ids
            from pg_temp.rebuilt as r
            where r.place is null
        ) as g
        cross join lateral duebook.locate_intents(g.account_ids, g.intent_ids) as n
    ) as l
    where b.account_id = l.account_id and b.intent_id = l.intent_id;

    perform duebook.append_outcomes(
        pg_catalog.array_agg(b.account_id), pg_catalog.array_agg(b.intent_id),
        pg_catalog.array_agg(b.ending_attempt_no)
    )
    from pg_temp.rebuilt as b
    where b.place = 'outcome' and not b.has_outcome;

    delete from duebook.due as d
    using pg_temp.rebuilt as b
    where b.account_id = d.account_id and b.intent_id = d.intent_id and b.place <> 'due';
    delete from duebook.held as h
    using pg_temp.rebuilt as b
    where b.account_id = h.account_id and b.intent_id = h.intent_id and b.place <> 'held';
    delete from duebook.in_doubt as u
    using pg_temp.rebuilt as b
    where b.account_id = u.account_id and b.intent_id = u.intent_id and b.place <> 'in_doubt';
    delete from duebook.proposed as p
    using pg_temp.rebuilt as b
    where b.account_id = p.account_id and b.intent_id = p.intent_id and b.place <> 'proposed';

    perform duebook.place_intents(
        pg_catalog.array_agg(b.account_id), pg_catalog.array_agg(b.intent_id)
    )
    from pg_temp.rebuilt as b
    where b.place in ('due', 'held', 'in_doubt', 'proposed') and b.place <> all(b.was);

    -- A batch that is gone without a word has ended here.
    insert into duebook.batch_ended (batch_id, token, sender, how, flush_no, size, claimed_at)
    select
        a.batch_id, pg_catalog.gen_random_uuid(), 'rebuild', 'dismantled', 0,
        pg_catalog.count(*), pg_catalog.max(a.claimed_at)
    from pg_temp.rebuilt as b
    inner join duebook.in_doubt as u on b.account_id = u.account_id and b.intent_id = u.intent_id
    inner join duebook.attempt as a
        on
            u.account_id = a.account_id
            and u.intent_id = a.intent_id
            and u.attempt_no = a.attempt_no
    where not exists (select from duebook.batch as l where l.batch_id = a.batch_id)
    group by a.batch_id
    on conflict do nothing;

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    select
        p_by, 'rebuild', b.account_id, coalesce(b.operation_key, 'intent:' || b.intent_id),
        pg_catalog.jsonb_build_object('was', b.was, 'place', b.place)
    from pg_temp.rebuilt as b;
    return query
    select b.account_id, b.intent_id, b.operation_key, b.was, b.place
    from pg_temp.rebuilt as b
    order by b.account_id, b.intent_id;
end;
$$;

COMMENT ON FUNCTION duebook.rebuild_moving(p_by text) IS 'Makes the moving tables again from the facts where they contradict them. Returns each intent that moved.';

CREATE FUNCTION duebook.record_delivery_report(p_channel text, p_provider_message_id text, p_status text, p_code text, p_reported_at timestamp with time zone, p_source text, p_suppression text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_report_id bigint;
begin
    insert into duebook.delivery_report as r (
        channel, provider_message_id, status, code, suppression, reported_at, source
    )
    values (
        p_channel, p_provider_message_id, p_status, p_code, p_suppression, p_reported_at, p_source
    )
    on conflict do nothing
    returning r.delivery_report_id into v_report_id;
    if v_report_id is null then
        return 'known';
    end if;
    if p_suppression is not null then
        insert into duebook.pending_report (delivery_report_id, give_up_at)
        values (v_report_id, pg_catalog.clock_timestamp() + interval '7 days');
        perform duebook.settle_delivery_reports(array[v_report_id]);
    end if;
    return 'recorded';
end;
$$;

COMMENT ON FUNCTION duebook.record_delivery_report(p_channel text, p_provider_message_id text, p_status text, p_code text, p_reported_at timestamp with time zone, p_source text, p_suppression text) IS 'Keeps what a provider said later of a message. Returns recorded or known.';

CREATE FUNCTION duebook.record_incident_intents(p_incident_id bigint) RETURNS bigint
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with standing as (
        select d.account_id, d.intent_id, d.due_at
        from duebook.due as d
        where d.due_at <= (select pg_catalog.clock_timestamp())
        union all
        select h.account_id, h.intent_id, h.due_at
        from duebook.held as h
        where h.due_at <= (select pg_catalog.clock_timestamp())
        union all
        select w.account_id, w.intent_id, w.due_at
        from duebook.batch as b
        cross join lateral unnest(b.account_ids, b.intent_ids, b.attempt_nos, b.due_ats)
            as w (account_id, intent_id, attempt_no, due_at)
        where
            not exists (
                select
                from duebook.attempt_result as r
                where
                    r.account_id = w.account_id
                    and r.intent_id = w.intent_id
                    and r.attempt_no = w.attempt_no
            )
    ),
    noted as (
        insert into duebook.incident_intent (incident_id, account_id, intent_id, due_at)
        select p_incident_id, s.account_id, s.intent_id, s.due_at
        from standing as s
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*) from noted;
$$;

COMMENT ON FUNCTION duebook.record_incident_intents(p_incident_id bigint) IS 'Notes what is past its due time and has not ended, for an incident. Returns how many were new.';

CREATE FUNCTION duebook.record_late_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) RETURNS TABLE(kept integer, ended integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

COMMENT ON FUNCTION duebook.record_late_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) IS 'Keeps the results of a rescued batch as late, and ends with them what is in doubt, back in due or held.';

CREATE FUNCTION duebook.record_observed_send(p_sender text, p_external_id text, p_account_id text, p_sent_at timestamp with time zone, p_operation_key text DEFAULT NULL::text, p_kind text DEFAULT NULL::text, p_payment_id text DEFAULT NULL::text, p_channel text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
begin
    if not exists (select from duebook.old_sender as s where s.sender = p_sender) then
        raise exception 'unknown old sender %: state [old_senders.%] in duebook.toml',
            p_sender, p_sender
            using errcode = 'no_data_found';
    end if;
    if p_operation_key is null and (p_kind is null or p_payment_id is null) then
        raise exception 'a send names its operation key, or its kind and payment'
            using errcode = 'invalid_parameter_value', column = 'operation_key';
    end if;

    insert into duebook.observed_send (
        sender, source, external_id, account_id, operation_key, kind, channel, payment_id, sent_at
    )
    values (
        p_sender, 'reported', p_external_id, p_account_id, p_operation_key,
        coalesce(p_kind, duebook.key_kind(p_operation_key)),
        coalesce(p_channel, nullif(pg_catalog.split_part(p_operation_key, ':', 2), '')),
        p_payment_id, p_sent_at
    )
    on conflict do nothing;
    if found then
        return 'recorded';
    end if;
    perform
    from duebook.observed_send as o
    where
        o.sender = p_sender
        and o.external_id = p_external_id
        and o.account_id = p_account_id
        and o.sent_at = p_sent_at
        and o.operation_key is not distinct from p_operation_key
        and (p_payment_id is null or o.payment_id = p_payment_id);
    if not found then
        raise exception 'send % of % was recorded with other content', p_external_id, p_sender
            using errcode = 'unique_violation', column = 'external_id';
    end if;
    return 'known';
end;
$$;

COMMENT ON FUNCTION duebook.record_observed_send(p_sender text, p_external_id text, p_account_id text, p_sent_at timestamp with time zone, p_operation_key text, p_kind text, p_payment_id text, p_channel text) IS 'Records that an old sender sent something. Returns recorded or known.';

CREATE FUNCTION duebook.record_receipt(p_endpoint text, p_event_id text, p_provider_account text, p_scheme text, p_headers jsonb, p_body bytea) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
declare
    v_digest bytea := pg_catalog.sha256(p_body);
begin
    -- A 2xx promises that the event survives a crash, however lax the server is set otherwise.
    if pg_catalog.current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
        perform pg_catalog.set_config('synchronous_commit', 'on', true);
    end if;

    insert into duebook.webhook_receipt (
        endpoint, event_id, provider_account, scheme, body_sha256
    )
    values (p_endpoint, p_event_id, p_provider_account, p_scheme, v_digest)
    on conflict do nothing;
    if found then
        insert into duebook.webhook_body (endpoint, event_id, body_sha256, headers, body)
        values (p_endpoint, p_event_id, v_digest, p_headers, p_body);
        if duebook.observe_webhook(p_endpoint, p_event_id, p_body) then
            return 'stored';
        end if;
        -- Two endpoints may tell one event: it is read once for its provider account.
        insert into duebook.pending_event (provider_account, event_id, endpoint)
        select p_provider_account, p_event_id, p_endpoint
        where not exists (
            select
            from duebook.event_effect as e
            where e.provider_account = p_provider_account and e.event_id = p_event_id
        )
        on conflict do nothing;
        return 'stored';
    end if;

    if exists (
        select
        from duebook.webhook_receipt as r
        where
            r.endpoint = p_endpoint
            and r.event_id = p_event_id
            and r.body_sha256 = v_digest
    ) then
        return 'duplicate';
    end if;

    insert into duebook.webhook_body (endpoint, event_id, body_sha256, headers, body)
    values (p_endpoint, p_event_id, v_digest, p_headers, p_body)
    on conflict do nothing;
    if found then
        insert into duebook.audit_event (actor, action, subject, detail)
        values (
            'receiver',
            'webhook_body_differs',
            p_provider_account,
            pg_catalog.jsonb_build_object(
                'endpoint', p_endpoint,
                'event_id', p_event_id,
                'body_sha256', pg_catalog.encode(v_digest, 'hex')
            )
        );
    end if;
    return 'differs';
end;
$$;

COMMENT ON FUNCTION duebook.record_receipt(p_endpoint text, p_event_id text, p_provider_account text, p_scheme text, p_headers jsonb, p_body bytea) IS 'Stores one verified webhook. Returns stored, duplicate, or differs (same id, another body).';

CREATE FUNCTION duebook.release_batch_from(p_batch_id bigint, p_from integer, p_reason text) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    AS $$
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

COMMENT ON FUNCTION duebook.release_batch_from(p_batch_id bigint, p_from integer, p_reason text) IS 'Gives back the intents of a batch from a position on, which were never tried. Returns how many.';

CREATE FUNCTION duebook.rescue_batch(p_batch duebook.batch, p_window integer) RETURNS TABLE(back_in_due integer, in_doubt integer, held integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    AS $$
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

COMMENT ON FUNCTION duebook.rescue_batch(p_batch duebook.batch, p_window integer) IS 'Puts the intents of a lapsed batch, locked by the caller, back in due, in doubt or held.';

CREATE FUNCTION duebook.rescue_batches(p_most integer, p_window integer) RETURNS TABLE(batch_id bigint, how text, back_in_due integer, in_doubt integer, held integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_batch duebook.batch;
    v_counts record;
    v_how text;
begin
    for v_batch in
        select b.*
        from duebook.batch as b
        where b.lease_until <= (select pg_catalog.clock_timestamp())
        order by b.lease_until
        limit p_most
        for update skip locked
    loop
        v_how := 'rescued';
        begin
            select r.* into v_counts from duebook.rescue_batch(v_batch, p_window) as r;
        exception
            when transaction_rollback or insufficient_resources or object_not_in_prerequisite_state
                or operator_intervention or system_error or internal_error then
                raise;
            when others then
                v_how := 'dismantled';
                select r.* into v_counts from duebook.dismantle_batch(v_batch, sqlstate) as r;
        end;

        delete from duebook.batch as b where b.batch_id = v_batch.batch_id;
        insert into duebook.batch_ended (
            batch_id, token, sender, how, flush_no, size, claimed_at, safe_retry_until,
            untried_from
        )
        select
            v_batch.batch_id, v_batch.token, v_batch.sender, v_how, v_batch.flush_no,
            v_batch.size, v_batch.claimed_at, v_batch.safe_retry_until,
            (
                select a.position
                from duebook.attempt as a
                where
                    a.account_id = v_batch.account_ids[v_batch.mark + 1]
                    and a.intent_id = v_batch.intent_ids[v_batch.mark + 1]
                    and a.attempt_no = v_batch.attempt_nos[v_batch.mark + 1]
            );
        return query
        select v_batch.batch_id, v_how, v_counts.back_in_due, v_counts.in_doubt, v_counts.held;
    end loop;
end;
$$;

COMMENT ON FUNCTION duebook.rescue_batches(p_most integer, p_window integer) IS 'Rescues at most p_most batches whose lease has lapsed; p_window is the largest window of sends. One row per batch.';

CREATE FUNCTION duebook.resend_intent(p_account_id text, p_operation_key text, p_reason text, p_by text, p_number integer DEFAULT NULL::integer) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_intent duebook.intent;
    v_count integer;
    v_key text;
    v_intent_id bigint;
    v_now timestamptz;
    v_give_up_after interval;
begin
    if p_operation_key like 'resend:%' then
        raise exception 'a repeat is not repeated: resend its first key'
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    select i.* into v_intent
    from duebook.intent as i
    where i.account_id = p_account_id and i.operation_key = p_operation_key
    for update;
    if not found then
        raise exception 'there is no intent with this operation key for this account'
            using errcode = 'no_data_found';
    end if;
    if v_intent.channel = 'internal' then
        raise exception 'this key is an act inside the house: there is nothing to send again'
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    select pg_catalog.count(*) + 1 into v_count
    from duebook.intent as i
    where
        i.account_id = p_account_id
        and i.subject = v_intent.subject
        and i.operation_key like 'resend:%'
        and pg_catalog.substr(
            i.operation_key, pg_catalog.strpos(pg_catalog.substr(i.operation_key, 8), ':') + 8
        ) = p_operation_key;
    if p_number between 1 and v_count - 1 then
        return 'resend:' || p_number || ':' || p_operation_key;
    end if;
    if p_number <> v_count then
        raise exception 'the next repeat of this key is number %', v_count
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    v_key := case when v_count > 1 then 'resend:' || (v_count - 1) || ':' else '' end
        || p_operation_key;
    if not exists (
        select from duebook.outcome as o
        where o.account_id = p_account_id and o.operation_key = v_key
    ) then
        raise exception
            '% has not ended: resolve it if it is in doubt, else it is still to come', v_key
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    v_key := 'resend:' || v_count || ':' || p_operation_key;
    v_now := pg_catalog.clock_timestamp();
    select coalesce(
        (select k.give_up_after from duebook.intent_kind as k where k.kind = v_intent.kind),
        v_intent.give_up_at - v_intent.notify_at
    ) into v_give_up_after;
    insert into duebook.intent (
        account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
        provider_account, run_id, change_id, ownership, cohort_version, intended_local, zone,
        tzdb_version
    )
    values (
        p_account_id, v_key, v_intent.kind, v_intent.subject, v_intent.payment_id,
        v_intent.channel, v_now, v_now + v_give_up_after, v_intent.provider_account,
        v_intent.run_id, v_intent.change_id, 'live', v_intent.cohort_version,
        v_intent.intended_local, v_intent.zone, v_intent.tzdb_version
    )
    returning intent_id into v_intent_id;
    insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
    values (
        p_account_id, v_intent_id, v_now, v_intent.kind, v_intent.channel, v_now + v_give_up_after
    );
    -- In the story of both keys.
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    select
        p_by, 'resend_intent', p_account_id, s.subject,
        pg_catalog.jsonb_build_object(
            'reason', p_reason, 'first_key', p_operation_key, 'new_key', v_key
        )
    from unnest(array[p_operation_key, v_key]) as s (subject);
    return v_key;
end;
$$;

COMMENT ON FUNCTION duebook.resend_intent(p_account_id text, p_operation_key text, p_reason text, p_by text, p_number integer) IS 'Promises once more what has ended, under a key of its own, due now. Returns the new key.';

CREATE FUNCTION duebook.resolve_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_accepted boolean, p_not_before timestamp with time zone, p_how text, p_why text, p_by text) RETURNS TABLE(account_id text, intent_id bigint, done text)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

COMMENT ON FUNCTION duebook.resolve_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_accepted boolean, p_not_before timestamp with time zone, p_how text, p_why text, p_by text) IS 'Ends the doubt about intents: sent, or back in due. Returns per intent: sent, due, had_ended, too_early or not_in_doubt.';

CREATE FUNCTION duebook.resume_incident(p_name text, p_by text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_incident duebook.incident;
    v_recorded bigint;
begin
    select i.* into v_incident
    from duebook.incident as i
    where i.name = p_name
    for update;
    if not found or v_incident.closed_at is not null then
        raise exception 'incident % is not open', p_name
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    if v_incident.resumed_at is not null then
        return false;
    end if;
    v_recorded := duebook.record_incident_intents(v_incident.incident_id);
    update duebook.incident as i
    set
        resumed_by = p_by,
        resumed_at = pg_catalog.clock_timestamp(),
        policies = duebook.incident_policies(i.incident_id)
    where i.incident_id = v_incident.incident_id;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'resume_incident', 'incident:' || p_name,
        pg_catalog.jsonb_build_object('due_since_it_was_opened', v_recorded)
    );
    return true;
end;
$$;

COMMENT ON FUNCTION duebook.resume_incident(p_name text, p_by text) IS 'Lets the sweeps go on under an open incident and notes what is due then. Returns false when that was done before.';

CREATE FUNCTION duebook.resume_intents(p_scope text, p_name text, p_reason text, p_by text) RETURNS TABLE(was_paused boolean, released bigint)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_pause duebook.pause;
    v_released bigint;
begin
    if
        pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a resume states its reason and who resumes'
            using errcode = 'invalid_parameter_value';
    end if;

    delete from duebook.pause as p
    where p.scope = p_scope and p.name = p_name
    returning p.* into v_pause;
    if not found then
        return query select false, 0::bigint;
        return;
    end if;

    -- Between two tests of a paused row lie up to six hours: those that this ends are tested next,
    -- the oldest first.
    update duebook.held as h
    set retest_at = least(h.due_at, pg_catalog.clock_timestamp())
    where
        h.cause = 'paused'
        and case p_scope
            when 'all' then true
            when 'kind' then h.kind = p_name
            when 'channel' then h.channel = p_name
            when 'account' then h.account_id = p_name
        end
        and duebook.pause_mode(h.account_id, h.kind, h.channel) is distinct from 'hold';
    get diagnostics v_released = row_count;

    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'resume', case when p_scope = 'account' then p_name end, p_scope || ':' || p_name,
        pg_catalog.jsonb_build_object(
            'reason', p_reason,
            'mode', v_pause.mode,
            'paused_by', v_pause.paused_by,
            'paused_at', v_pause.paused_at,
            'released', v_released
        )
    );
    return query select true, v_released;
end;
$$;

COMMENT ON FUNCTION duebook.resume_intents(p_scope text, p_name text, p_reason text, p_by text) IS 'Ends a pause: what it held goes back into due by the next sweeps, with the due time that it had. Returns whether it was paused, and how many intents are released.';

CREATE FUNCTION duebook.retest_held(p_most integer, p_environment text) RETURNS TABLE(back_in_due integer, expired integer, tested integer)
    LANGUAGE sql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    AS $$
    with clock as materialized (
        select
            pg_catalog.clock_timestamp() as now,
            duebook.environment_refusal(p_environment) is null as is_environment_accepted
    ),
    picked as materialized (
        select h.*
        from duebook.held as h
        where h.retest_at <= (select c.now from clock as c)
        order by h.retest_at, h.account_id, h.intent_id
        limit p_most
        for update skip locked
    ),
    pauses as materialized (
        select p.scope, p.name
        from duebook.pause as p
        where
            exists (select from picked as h where h.cause = 'paused')
            and (
                p.scope <> 'account'
                or p.name in (select h.account_id from picked as h where h.cause = 'paused')
            )
        for share skip locked
    ),
    certain as materialized (
        select
            (select pg_catalog.count(*) from pauses) = (
                select pg_catalog.count(*)
                from duebook.pause as p
                where
                    p.scope <> 'account'
                    or p.name in (select h.account_id from picked as h where h.cause = 'paused')
            ) as of_pauses
    ),
    judged as materialized (
        select
            p.*,
            f.of_pauses as is_certain,
            i.operation_key,
            i.payment_id,
            i.intended_local,
            i.zone,
            c.now,
            greatest(
                p.claims,
                (
                    select coalesce(pg_catalog.max(a.attempt_no), 0)
                    from duebook.attempt as a
                    where a.account_id = p.account_id and a.intent_id = p.intent_id
                )
            ) as known_claims,
            case
                when exists (
                    select
                    from duebook.outcome as o
                    where o.account_id = p.account_id and o.operation_key = i.operation_key
                ) then 'gone'
                when p.give_up_at <= c.now then 'too_late'
                when p.cause = 'no_contact' and not exists (
                    select
                    from duebook.contact as t
                    where t.account_id = p.account_id and t.channel = p.channel
                ) then 'wait'
                when p.cause = 'zone_unknown' and (
                    not exists (
                        select
                        from duebook.contact as t
                        where
                            t.account_id = p.account_id
                            and t.channel = p.channel
                            and t.imported_at > p.since
                    )
                    or exists (
                        select
                        from duebook.occurrence as e
                        where
                            e.account_id = p.account_id
                            and e.intent_id = p.intent_id
                            and e.due_at is null
                    )
                ) then 'wait'
                when p.cause = 'paused' and (
                    not f.of_pauses
                    or duebook.pause_mode(p.account_id, p.kind, p.channel) = 'hold'
                ) then 'wait'
                when p.cause = 'no_consent' and not exists (
                    select
                    from duebook.consent as n
                    where
                        n.account_id = p.account_id
                        and n.kind in (p.kind, '*')
                        and n.channel in (p.channel, '*')
                ) then 'wait'
                when p.cause = 'kind_unknown' and not exists (
                    select from duebook.intent_kind as k where k.kind = p.kind
                ) then 'wait'
                when p.cause = 'environment' and not c.is_environment_accepted then 'wait'
                when
                    p.cause = 'attempt_conflict'
                    and duebook.is_in_flight(p.account_id, p.intent_id) then 'gone'
                when p.cause in ('poison', 'rescue_failed', 'rule_edited') then 'wait'
                else 'due'
            end as verdict
        from picked as p
        cross join clock as c
        cross join certain as f
        left join duebook.intent as i on p.account_id = i.account_id and p.intent_id = i.intent_id
    ),
    due_again as materialized (
        select
            j.*,
            case
                when j.cause = 'paused' then j.due_at
                else greatest(j.due_at, j.now)
            end as due_again_at,
            case when j.cause = 'paused' then 'resumed' else 'released' end as why
        from judged as j
        where j.verdict = 'due'
    ),
    removed as (
        delete from duebook.held as h
        using judged as j
        where
            h.account_id = j.account_id
            and h.intent_id = j.intent_id
            and (
                j.verdict in ('due', 'gone')
                or (j.verdict = 'too_late' and j.operation_key is not null)
            )
    ),
    postponed as (
        update duebook.held as h
        set
            retest_at = case
                when j.verdict = 'too_late' then j.now + interval '10 minutes'
                when j.cause in ('poison', 'rescue_failed')
                    then least(j.now + interval '10 minutes', j.give_up_at)
                when j.cause = 'paused' and j.is_certain
                    then least(
                        j.now + least(
                            greatest(j.now - j.since, interval '1 minute'), interval '6 hours'
                        ),
                        j.give_up_at
                    )
                else least(j.now + interval '1 minute', j.give_up_at)
            end
        from judged as j
        where
            h.account_id = j.account_id
            and h.intent_id = j.intent_id
            and (j.verdict = 'wait' or (j.verdict = 'too_late' and j.operation_key is null))
    ),
    back as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            j.account_id, j.intent_id, j.due_again_at, j.kind, j.channel, j.give_up_at,
            j.tries, j.known_claims, j.suspicions, j.safe_retry_until
        from due_again as j
        on conflict do nothing
    ),
    released as (
        insert into duebook.intent_change (account_id, intent_id, due_at, reason)
        select j.account_id, j.intent_id, j.due_again_at, j.why
        from due_again as j
    ),
    ended as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at
        )
        select
            j.account_id, j.operation_key, j.intent_id, j.kind, j.payment_id, 'expired', 'too_late',
            j.intended_local, j.zone, j.due_at
        from judged as j
        where j.verdict = 'too_late' and j.operation_key is not null
        order by j.account_id, j.operation_key
        on conflict do nothing
    )
    select
        (pg_catalog.count(*) filter (where j.verdict = 'due'))::integer,
        (pg_catalog.count(*) filter (where j.verdict = 'too_late'))::integer,
        pg_catalog.count(*)::integer
    from judged as j;
$$;

COMMENT ON FUNCTION duebook.retest_held(p_most integer, p_environment text) IS 'Tests held intents against their cause: due again, ended too_late, or looked at later. Returns how many of each, and of all.';

CREATE TABLE duebook.schedule (
    account_id text NOT NULL,
    schedule text NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    frequency text NOT NULL,
    every smallint NOT NULL,
    weekdays smallint[],
    month_day smallint,
    nth smallint,
    business_shift text NOT NULL,
    holiday_calendar text,
    zone text NOT NULL,
    wall_time time without time zone NOT NULL,
    absent text NOT NULL,
    gap text NOT NULL,
    overlap text NOT NULL,
    starts_on date NOT NULL,
    ends_on date,
    occurrence_count integer,
    catch_up text NOT NULL,
    catch_up_window interval NOT NULL,
    max_occurrences integer NOT NULL,
    spread_per_minute integer NOT NULL,
    message jsonb DEFAULT '{}'::jsonb NOT NULL,
    rule_version integer DEFAULT 1 NOT NULL,
    next_on date,
    next_at timestamp with time zone,
    put_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    put_by text NOT NULL,
    edited_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    cancelled_by text,
    zone_missing_since timestamp with time zone,
    CONSTRAINT absent_is_known CHECK ((absent = ANY (ARRAY['omit'::text, 'backward'::text, 'forward'::text]))),
    CONSTRAINT business_shift_is_known CHECK ((business_shift = ANY (ARRAY['none'::text, 'next'::text, 'previous'::text]))),
    CONSTRAINT count_is_positive CHECK (((occurrence_count IS NULL) OR (occurrence_count > 0))),
    CONSTRAINT days_fit_the_frequency CHECK (
CASE frequency
    WHEN 'weekly'::text THEN ((weekdays IS NOT NULL) AND (month_day IS NULL) AND (nth IS NULL))
    ELSE ((month_day IS NOT NULL) <> ((weekdays IS NOT NULL) AND (nth IS NOT NULL)))
END),
    CONSTRAINT ends_on_is_not_before_start CHECK (((ends_on IS NULL) OR (ends_on >= starts_on))),
    CONSTRAINT every_is_positive CHECK (((every >= 1) AND (every <= 1000))),
    CONSTRAINT frequency_is_known CHECK ((frequency = ANY (ARRAY['weekly'::text, 'monthly'::text]))),
    CONSTRAINT gap_is_known CHECK ((gap = ANY (ARRAY['skip'::text, 'earlier'::text, 'later'::text]))),
    CONSTRAINT month_day_is_known CHECK (((month_day IS NULL) OR (month_day = '-1'::integer) OR ((month_day >= 1) AND (month_day <= 31)))),
    CONSTRAINT next_date_has_an_instant CHECK (((next_on IS NULL) = (next_at IS NULL))),
    CONSTRAINT nth_is_known CHECK (((nth IS NULL) OR (nth = '-1'::integer) OR ((nth >= 1) AND (nth <= 5)))),
    CONSTRAINT overlap_is_known CHECK ((overlap = ANY (ARRAY['earlier'::text, 'later'::text]))),
    CONSTRAINT schedule_catch_up_is_known CHECK ((catch_up = ANY (ARRAY['all'::text, 'latest'::text, 'skip'::text]))),
    CONSTRAINT schedule_is_valid CHECK (((char_length(schedule) >= 1) AND (char_length(schedule) <= 200))),
    CONSTRAINT schedule_max_is_positive CHECK ((max_occurrences > 0)),
    CONSTRAINT schedule_spread_is_positive CHECK ((spread_per_minute > 0)),
    CONSTRAINT schedule_window_is_two_sweeps CHECK (((catch_up_window >= '00:02:00'::interval) AND (catch_up_window <= '36525 days'::interval))),
    CONSTRAINT shift_has_a_calendar CHECK (((business_shift = 'none'::text) = (holiday_calendar IS NULL))),
    CONSTRAINT wall_time_is_of_the_day CHECK ((wall_time < '24:00:00'::time without time zone)),
    CONSTRAINT weekdays_are_known CHECK (((weekdays IS NULL) OR (((cardinality(weekdays) >= 1) AND (cardinality(weekdays) <= 7)) AND (weekdays <@ ARRAY[(1)::smallint, (2)::smallint, (3)::smallint, (4)::smallint, (5)::smallint, (6)::smallint, (7)::smallint]))))
);

COMMENT ON TABLE duebook.schedule IS 'A weekly or monthly rule in a named zone. Its occurrences are written ahead of their time by each sweep.';

COMMENT ON COLUMN duebook.schedule.account_id IS 'Customer account that is reminded.';

COMMENT ON COLUMN duebook.schedule.schedule IS 'Name of the schedule, unique for the account; stands in its operation keys.';

COMMENT ON COLUMN duebook.schedule.kind IS 'Kind of notice, see intent_kind.';

COMMENT ON COLUMN duebook.schedule.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook.schedule.frequency IS 'weekly or monthly.';

COMMENT ON COLUMN duebook.schedule.every IS 'Every so many weeks or months, counted from starts_on.';

COMMENT ON COLUMN duebook.schedule.weekdays IS 'ISO weekdays, 1 is Monday: of each week, or with nth of each month.';

COMMENT ON COLUMN duebook.schedule.month_day IS 'Day of the month, 1 to 31; -1: the last.';

COMMENT ON COLUMN duebook.schedule.nth IS 'Which of the weekdays in a month, 1 to 5; -1: the last.';

COMMENT ON COLUMN duebook.schedule.business_shift IS 'A date on a weekend or holiday moves to the next or previous business day, or stays (none).';

COMMENT ON COLUMN duebook.schedule.holiday_calendar IS 'Whose holidays count, as the holidays library names them: DE, US-NY, ECB.';

COMMENT ON COLUMN duebook.schedule.zone IS 'IANA zone of the wall time, as it was given.';

COMMENT ON COLUMN duebook.schedule.wall_time IS 'Local time of day.';

COMMENT ON COLUMN duebook.schedule.absent IS 'A date the month does not have (RFC 7529 SKIP): omit, backward or forward.';

COMMENT ON COLUMN duebook.schedule.gap IS 'A local time that the clock skips: skip it, or the instant earlier or later by the gap.';

COMMENT ON COLUMN duebook.schedule.overlap IS 'A local time that comes twice: the earlier or the later.';

COMMENT ON COLUMN duebook.schedule.starts_on IS 'First local date; anchors every.';

COMMENT ON COLUMN duebook.schedule.ends_on IS 'Last local date; null: no end.';

COMMENT ON COLUMN duebook.schedule.occurrence_count IS 'At most so many occurrences from starts_on on; null: no limit.';

COMMENT ON COLUMN duebook.schedule.catch_up IS 'What happens to missed ones: all, latest or skip.';

COMMENT ON COLUMN duebook.schedule.catch_up_window IS 'How old a missed one may be and still be sent.';

COMMENT ON COLUMN duebook.schedule.max_occurrences IS 'At most so many missed ones are sent.';

COMMENT ON COLUMN duebook.schedule.spread_per_minute IS 'Rate while catching up.';

COMMENT ON COLUMN duebook.schedule.message IS 'Texts for the template. No amount, no address.';

COMMENT ON COLUMN duebook.schedule.rule_version IS 'Counts the edits of the rule; occurrences of an older one are computed again.';

COMMENT ON COLUMN duebook.schedule.next_on IS 'Next nominal date that is not written yet; null: none is left.';

COMMENT ON COLUMN duebook.schedule.next_at IS 'When that date is due, as it was computed last; after a put a time before it.';

COMMENT ON COLUMN duebook.schedule.put_at IS 'When its rule was put or last edited. Instants before that are no promise of it.';

COMMENT ON COLUMN duebook.schedule.put_by IS 'Who put it.';

COMMENT ON COLUMN duebook.schedule.edited_at IS 'When its rule was edited, until its unclaimed occurrences are computed again; null: they are.';

COMMENT ON COLUMN duebook.schedule.cancelled_at IS 'When it was cancelled.';

COMMENT ON COLUMN duebook.schedule.cancelled_by IS 'Who cancelled it.';

COMMENT ON COLUMN duebook.schedule.zone_missing_since IS 'Since when its zone is in no time zone database here; its rows are held.';

CREATE FUNCTION duebook.schedule_fault(p_schedule duebook.schedule) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select array[f.field, f.reason]
    from (
        values
        (1, 'account_id', duebook.name_fault(p_schedule.account_id)),
        (2, 'schedule', duebook.name_fault(p_schedule.schedule)),
        (3, 'account_id', case when p_schedule.account_id = '' then 'empty' end),
        (4, 'schedule', case when p_schedule.schedule = '' then 'empty' end),
        (5, 'kind', case
            when not exists (
                select from duebook.intent_kind as k where k.kind = p_schedule.kind and k.enabled
            ) or p_schedule.kind is null
                then 'expected an enabled kind of duebook.toml'
        end),
        (6, 'channel', case
            when p_schedule.channel is null or not exists (
                select from duebook.intent_kind as k
                where k.channel = p_schedule.channel and k.enabled
            )
                then 'expected a channel that carries an enabled kind: no sender serves another'
        end),
        (7, 'frequency', case
            when p_schedule.frequency in ('weekly', 'monthly') then null
            else 'expected weekly or monthly'
        end),
        (8, 'every', case
            when p_schedule.every between 1 and 1000 then null
            else 'expected a whole number from 1 to 1000'
        end),
        (9, 'weekdays', case
            when p_schedule.weekdays is null and p_schedule.frequency = 'weekly'
                then 'a weekly rule names its weekdays'
            when pg_catalog.cardinality(p_schedule.weekdays) = 0 then 'empty'
            when not p_schedule.weekdays <@ array[1, 2, 3, 4, 5, 6, 7]::smallint[]
                then 'expected ISO weekdays, 1 (Monday) to 7'
        end),
        (10, 'month_day', case
            when p_schedule.month_day is not null and p_schedule.frequency = 'weekly'
                then 'a weekly rule has no day of the month'
            when p_schedule.month_day is not null and p_schedule.weekdays is not null
                then 'a monthly rule has a day of the month or weekdays, not both'
            when p_schedule.month_day not between 1 and 31 and p_schedule.month_day <> -1
                then 'expected 1 to 31, or -1 for the last day'
            when
                p_schedule.frequency = 'monthly'
                and p_schedule.month_day is null
                and p_schedule.weekdays is null
                then 'a monthly rule names a day of the month, or weekdays and which of them'
        end),
        (11, 'nth', case
            when p_schedule.nth is not null and p_schedule.frequency = 'weekly'
                then 'a weekly rule has no nth'
            when p_schedule.nth is not null and p_schedule.weekdays is null
                then 'needs weekdays'
            when
                p_schedule.nth is null
                and p_schedule.frequency = 'monthly'
                and p_schedule.weekdays is not null
                then 'expected which of the weekdays, 1 to 5, or -1 for the last'
            when p_schedule.nth not between 1 and 5 and p_schedule.nth <> -1
                then 'expected 1 to 5, or -1 for the last'
        end),
        (12, 'business_shift', case
            when p_schedule.business_shift in ('none', 'next', 'previous') then null
            else 'expected none, next or previous'
        end),
        (13, 'holiday_calendar', case
            when p_schedule.business_shift = 'none' and p_schedule.holiday_calendar is not null
                then 'only with a business shift'
            when p_schedule.business_shift <> 'none' and p_schedule.holiday_calendar is null
                then 'a business shift needs a calendar of holidays'
        end),
        (14, 'zone', case
            when p_schedule.zone is null then 'empty'
            when not duebook.is_zone_name(p_schedule.zone)
                then 'not a time zone that this server knows'
        end),
        (15, 'wall_time', case
            when p_schedule.wall_time is null then 'empty'
            when p_schedule.wall_time = '24:00' then 'expected 00:00 to 23:59'
            when p_schedule.wall_time <> pg_catalog.date_trunc('minute', p_schedule.wall_time)
                then 'expected whole minutes'
        end),
        (16, 'absent', case
            when p_schedule.absent in ('omit', 'backward', 'forward') then null
            else 'expected omit, backward or forward'
        end),
        (17, 'gap', case
            when p_schedule.gap in ('skip', 'earlier', 'later') then null
            else 'expected skip, earlier or later'
        end),
        (18, 'overlap', case
            when p_schedule.overlap in ('earlier', 'later') then null
            else 'expected earlier or later'
        end),
        (19, 'starts_on', case
            when p_schedule.starts_on is null then 'empty'
            when p_schedule.starts_on not between date '1970-01-01' and date '9000-12-31'
                then 'expected a date from 1970 to 9000'
        end),
        (20, 'ends_on', case
            when p_schedule.ends_on < p_schedule.starts_on then 'before the start'
            when p_schedule.ends_on > date '9000-12-31' then 'expected a date up to 9000'
        end),
        (21, 'count', case
            when p_schedule.occurrence_count not between 1 and 100000
                then 'expected a whole number from 1 to 100000'
        end),
        (22, 'catch_up', case
            when p_schedule.catch_up in ('all', 'latest', 'skip') then null
            else 'expected all, latest or skip'
        end),
        (23, 'catch_up_window', case
            -- Infinity would be taken by PostgreSQL, and read by no sweep.
            when p_schedule.catch_up_window > interval '36525 days' then 'more than 100 years'
            when p_schedule.catch_up_window >= interval '2 minutes' then null
            else 'expected at least two sweeps (2 minutes)'
        end),
        (24, 'max_occurrences', case
            when p_schedule.max_occurrences > 0 then null
            else 'expected a whole number from 1'
        end),
        (25, 'spread_per_minute', case
            when p_schedule.spread_per_minute > 0 then null
            else 'expected a whole number from 1'
        end),
        (26, 'message', duebook.message_fault(p_schedule.message)),
        (27, 'put_by', case when coalesce(p_schedule.put_by, '') = '' then 'empty' end)
    ) as f (position, field, reason)
    where f.reason is not null
    order by f.position
    limit 1;
$$;

COMMENT ON FUNCTION duebook.schedule_fault(p_schedule duebook.schedule) IS 'The first thing that is wrong with a schedule, as {field, reason}; null: nothing.';

CREATE FUNCTION duebook.set_aside_due(p_picked tid[], p_batch_id bigint) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with aside as materialized (
        select
            d.*,
            i.operation_key,
            duebook.is_poison(d.account_id, d.intent_id, d.kind, d.claims) as is_poison,
            duebook.is_in_flight(d.account_id, d.intent_id)
            or exists (
                select
                from duebook.held as h
                where h.account_id = d.account_id and h.intent_id = d.intent_id
            )
            or exists (
                select
                from duebook.outcome as o
                where o.account_id = d.account_id and o.operation_key = i.operation_key
            ) as is_elsewhere
        from duebook.due as d
        left join duebook.intent as i on d.account_id = i.account_id and d.intent_id = i.intent_id
        where
            d.ctid = any(p_picked)
            and not exists (
                select
                from duebook.attempt as a
                where
                    a.account_id = d.account_id
                    and a.intent_id = d.intent_id
                    and a.attempt_no = d.claims + 1
                    and a.batch_id = p_batch_id
            )
    ),
    held as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            x.account_id, x.intent_id,
            case when x.is_poison then 'poison' else 'attempt_conflict' end,
            x.due_at, x.kind, x.channel, x.give_up_at,
            x.tries, x.claims, x.suspicions, x.safe_retry_until
        from aside as x
        where not x.is_elsewhere
        on conflict do nothing
    ),
    noted as (
        insert into duebook.audit_event (actor, action, account_id, subject, detail)
        select
            'claim', 'drop_duplicate_due', x.account_id, x.operation_key,
            pg_catalog.jsonb_build_object('intent_id', x.intent_id, 'claims', x.claims)
        from aside as x
        where x.is_elsewhere
    )
    select pg_catalog.count(*)::integer from aside;
$$;

COMMENT ON FUNCTION duebook.set_aside_due(p_picked tid[], p_batch_id bigint) IS 'Puts picked due rows that got no attempt into held with their cause, or notes that they were duplicates. Returns how many.';

CREATE FUNCTION duebook.set_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_decided_at timestamptz := coalesce(p_decided_at, pg_catalog.clock_timestamp());
    v_known duebook.consent;
begin
    if
        p_account_id is null or p_kind is null or p_channel is null or p_granted is null
        or pg_catalog.btrim(coalesce(p_source, '')) = ''
    then
        raise exception 'a consent names account, kind, channel, decision and source'
            using errcode = 'invalid_parameter_value';
    end if;
    -- Somebody who decides from a clock that is ahead must not outrank later decisions for long.
    if v_decided_at > pg_catalog.clock_timestamp() + interval '5 minutes' then
        raise exception 'a decision of % is in the future', v_decided_at
            using errcode = 'invalid_parameter_value', column = 'decided_at';
    end if;

    insert into duebook.consent as c (account_id, kind, channel, granted, source, decided_at)
    values (p_account_id, p_kind, p_channel, p_granted, p_source, v_decided_at)
    on conflict (account_id, kind, channel) do nothing;
    if not found then
        select c.* into strict v_known
        from duebook.consent as c
        where c.account_id = p_account_id and c.kind = p_kind and c.channel = p_channel
        for update;
        if
            (v_known.granted, v_known.source, v_known.decided_at)
            is not distinct from (p_granted, p_source, v_decided_at)
        then
            return 'known';
        end if;
        if v_known.decided_at = v_decided_at and v_known.source = p_source then
            raise exception 'the decision of % for % was recorded otherwise',
                p_source, v_decided_at
                using errcode = 'unique_violation', column = 'granted';
        end if;
        -- Of two at once the refusal counts.
        if
            v_known.decided_at > v_decided_at
            or (v_known.decided_at = v_decided_at and not v_known.granted)
        then
            perform duebook.audit_consent(
                p_account_id, p_kind, p_channel, p_granted, p_source, v_decided_at, false
            );
            return 'older';
        end if;
        update duebook.consent as c
        set granted = p_granted, source = p_source, decided_at = v_decided_at
        where c.account_id = p_account_id and c.kind = p_kind and c.channel = p_channel;
    end if;
    perform duebook.audit_consent(
        p_account_id, p_kind, p_channel, p_granted, p_source, v_decided_at, true
    );
    return 'recorded';
end;
$$;

COMMENT ON FUNCTION duebook.set_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone) IS 'Records a decision of an account about a kind of notice on a channel. Returns recorded, older or known.';

CREATE FUNCTION duebook.set_hold_resource(p_resource text, p_capacity integer, p_by text DEFAULT SESSION_USER) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_before duebook.hold_resource;
    v_is_known boolean;
    v_fault text := duebook.name_fault(nullif(p_resource, ''));
begin
    if v_fault is not null then
        raise exception 'resource: %', v_fault
            using errcode = 'invalid_parameter_value', column = 'resource';
    end if;
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by)
            using errcode = 'invalid_parameter_value', column = 'by';
    end if;
    if p_capacity < 0 then
        raise exception 'capacity: expected 0 or more'
            using errcode = 'invalid_parameter_value', column = 'capacity';
    end if;
    v_is_known := exists (
        select from duebook.hold_resource as r where r.resource = p_resource
    );
    v_before := duebook.lock_hold_resource(p_resource);
    if v_is_known and v_before.capacity is not distinct from p_capacity then
        return 'unchanged';
    end if;
    update duebook.hold_resource as r
    set capacity = p_capacity, updated_at = pg_catalog.clock_timestamp()
    where r.resource = p_resource;
    insert into duebook.audit_event (actor, action, subject, detail)
    values (
        p_by, 'set_hold_resource', 'resource:' || p_resource,
        pg_catalog.jsonb_build_object('before', v_before.capacity, 'after', p_capacity)
    );
    return 'set';
end;
$$;

COMMENT ON FUNCTION duebook.set_hold_resource(p_resource text, p_capacity integer, p_by text) IS 'States how much of a resource there is; null: no limit. Returns set or unchanged.';

CREATE FUNCTION duebook.settle_delivery_reports(p_reports bigint[] DEFAULT NULL::bigint[]) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
    with picked as materialized (
        select p.delivery_report_id, p.give_up_at
        from duebook.pending_report as p
        where p_reports is null or p.delivery_report_id = any(p_reports)
        order by p.delivery_report_id
        limit 1000
        for update skip locked
    ),
    found as materialized (
        select
            p.delivery_report_id,
            r.reported_at,
            o.account_id,
            r.channel,
            r.suppression,
            case r.status when 'complained' then 'recipient' else 'provider' end as source
        from picked as p
        inner join duebook.delivery_report as r on p.delivery_report_id = r.delivery_report_id
        inner join duebook.outcome as o on r.provider_message_id = o.provider_message_id
        inner join duebook.intent as i
            on o.account_id = i.account_id and o.intent_id = i.intent_id and r.channel = i.channel
    ),
    settled as (
        delete from duebook.pending_report as q
        using picked as p
        where
            q.delivery_report_id = p.delivery_report_id
            and (
                p.give_up_at <= pg_catalog.clock_timestamp()
                or p.delivery_report_id in (select f.delivery_report_id from found as f)
            )
    ),
    suppressed as (
        insert into duebook.suppression as s (account_id, channel, reason, source)
        select distinct on (f.account_id, f.channel)
            f.account_id, f.channel, f.suppression, f.source
        from found as f
        order by f.account_id, f.channel, f.reported_at
        on conflict do nothing
        returning s.account_id
    )
    select pg_catalog.count(*)::integer from suppressed;
$$;

COMMENT ON FUNCTION duebook.settle_delivery_reports(p_reports bigint[]) IS 'Suppresses the accounts of reported messages whose outcome is there by now. Returns how many.';

CREATE FUNCTION duebook.settle_hold(p_account_id text, p_hold text, p_payment_id text, p_ownership text, p_change duebook.ledger_change, p_by text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_resource duebook.hold_resource;
    v_hold duebook.hold;
    v_now timestamptz;
    v_state text;
    v_answer text;
    v_is_told boolean;
begin
    -- What it reserves never changes; resources are locked before holds.
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold;
    if not found then
        raise exception 'there is no hold % of this account', p_hold
            using errcode = 'no_data_found';
    end if;
    if v_hold.resource is not null then
        v_resource := duebook.lock_hold_resource(v_hold.resource);
    end if;
    select h.* into v_hold
    from duebook.hold as h
    where h.account_id = p_account_id and h.hold = p_hold
    for update;
    v_now := pg_catalog.clock_timestamp();
    if p_payment_id <> v_hold.payment_id then
        raise exception 'hold % is for another payment', p_hold
            using errcode = 'unique_violation', column = 'payment_id';
    end if;

    v_state := duebook.hold_state(v_hold, v_now);
    v_answer := case
        when v_state = 'open' then 'confirmed'
        when v_state = 'confirmed' then 'already_confirmed'
        when v_state = 'refunded' then 'refund'
        when v_state <> 'expired' or p_payment_id is null then v_state
        when exists (
            select
            from duebook.hold as o
            where
                o.account_id = p_account_id
                and o.payment_id = p_payment_id
                and o.created_at >= v_hold.expires_at
                and o.cancelled_at is null
        ) then v_state
        when duebook.has_room(v_resource, v_hold.quantity, v_now) then 'reheld'
        else 'refund'
    end;
    if v_state = 'confirmed' and v_hold.payment_id is null and p_payment_id is not null then
        -- Confirmed before it was paid: from now on it is this payment's, and no other's.
        update duebook.hold as h
        set payment_id = p_payment_id
        where h.account_id = p_account_id and h.hold = p_hold;
    end if;
    if v_state not in ('open', 'expired') or v_answer = 'expired' then
        return v_answer;
    end if;

    update duebook.hold as h
    set
        payment_id = coalesce(h.payment_id, p_payment_id),
        confirmed_at = case when v_answer <> 'refund' then v_now end,
        reheld_at = case when v_answer = 'reheld' then v_now end,
        refunded_at = case when v_answer = 'refund' then v_now end
    where h.account_id = p_account_id and h.hold = p_hold;
    if v_answer = 'refund' then
        v_is_told := duebook.promise_hold_refund(v_hold, p_payment_id, p_ownership, p_change);
    else
        update duebook.hold_resource as r
        set confirmed = r.confirmed + v_hold.quantity
        where r.resource = v_hold.resource;
        perform duebook.end_hold_expiry(v_hold, 'settled_meanwhile', 'confirmed', p_by);
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'confirm_hold', p_account_id,
        duebook.hold_expiry_key(v_hold.hold, v_hold.expires_at),
        pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'answer', v_answer, 'payment_id', p_payment_id, 'run_id', p_change.run_id,
                'is_told', v_is_told
            )
        )
    );
    return v_answer;
end;
$$;

COMMENT ON FUNCTION duebook.settle_hold(p_account_id text, p_hold text, p_payment_id text, p_ownership text, p_change duebook.ledger_change, p_by text) IS 'Confirms a hold or says why not; a payment that came too late re-holds it or is to be refunded.';

CREATE FUNCTION duebook.settle_run_holds(p_run_id bigint, p_mode text, p_by text) RETURNS TABLE(settled integer, refunds integer)
    LANGUAGE plpgsql
    SET search_path TO ''
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
    v_waiting record;
    v_resource text;
    v_change duebook.ledger_change;
    v_answer text;
    v_answers text[] := '{}';
begin
    for v_resource in
        select distinct w.resource
        from duebook.find_run_holds(p_run_id) as w
        where w.resource is not null
        order by w.resource
    loop
        perform duebook.lock_hold_resource(v_resource);
    end loop;
    for v_waiting in
        select w.account_id, w.hold, w.payment_id, w.change_id
        from duebook.find_run_holds(p_run_id) as w
        order by w.account_id, w.hold
    loop
        select c.* into v_change
        from duebook.ledger_change as c
        where c.account_id = v_waiting.account_id and c.change_id = v_waiting.change_id;
        v_answer := duebook.settle_hold(
            v_waiting.account_id, v_waiting.hold, v_waiting.payment_id, p_mode, v_change, p_by
        );
        v_answers := v_answers || v_answer;
    end loop;
    return query
    select
        (pg_catalog.count(*) filter (where a.answer in ('confirmed', 'reheld', 'refund')))::integer,
        (pg_catalog.count(*) filter (where a.answer = 'refund'))::integer
    from unnest(v_answers) as a (answer);
end;
$$;

COMMENT ON FUNCTION duebook.settle_run_holds(p_run_id bigint, p_mode text, p_by text) IS 'Confirms, re-holds or refunds the holds whose payment a run settled in full. Returns how many changed, and how many refunds.';

CREATE FUNCTION duebook.settled_status(p_expected_minor bigint, p_captured_minor bigint, p_refunded_minor bigint, p_charged_back_minor bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        case
            when p_charged_back_minor > 0 then 'charged_back'
            when p_refunded_minor > 0 and p_refunded_minor >= p_captured_minor then 'refunded'
            when p_refunded_minor > 0 then 'partially_refunded'
            when p_captured_minor <= 0 then 'expected'
            when p_captured_minor < p_expected_minor then 'partially_settled'
            when p_captured_minor = p_expected_minor then 'settled'
            else 'over_settled'
        end;
$$;

COMMENT ON FUNCTION duebook.settled_status(p_expected_minor bigint, p_captured_minor bigint, p_refunded_minor bigint, p_charged_back_minor bigint) IS 'Status of the settled side: expected, partially_settled, settled, over_settled, partially_refunded, refunded, charged_back.';

CREATE TABLE duebook.discrepancy (
    provider_account text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    account_id text,
    payment_id text,
    batch_ref text,
    entry_id text,
    provider_minor bigint,
    ledger_minor bigint,
    currency character(3),
    detail text,
    status text DEFAULT 'open'::text NOT NULL,
    severity text DEFAULT 'normal'::text NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    opened_run_id bigint NOT NULL,
    last_run_id bigint NOT NULL,
    times_opened integer DEFAULT 1 NOT NULL,
    assignee text,
    decided_provider_minor bigint,
    decided_ledger_minor bigint,
    decided_currency character(3),
    CONSTRAINT discrepancy_kind_is_known CHECK ((kind = ANY (ARRAY['missing_in_ledger'::text, 'missing_at_provider'::text, 'amount_mismatch'::text, 'currency_mismatch'::text, 'status_mismatch'::text, 'duplicate_reference'::text, 'unexplained_remainder'::text]))),
    CONSTRAINT discrepancy_status_is_known CHECK ((status = ANY (ARRAY['open'::text, 'acknowledged'::text, 'resolved'::text, 'ignored'::text, 'written_off'::text, 'closed'::text])))
);

COMMENT ON TABLE duebook.discrepancy IS 'One difference between the sides; it closes when the difference is gone and reopens if it returns.';

COMMENT ON COLUMN duebook.discrepancy.provider_account IS 'Account whose run found it.';

COMMENT ON COLUMN duebook.discrepancy.kind IS 'What differs.';

COMMENT ON COLUMN duebook.discrepancy.subject IS 'payment:<account>:<payment>, entry:<entry> or batch:<batch>:<currency>; never null.';

COMMENT ON COLUMN duebook.discrepancy.account_id IS 'Customer account, where a payment is concerned.';

COMMENT ON COLUMN duebook.discrepancy.payment_id IS 'Payment, where one is concerned.';

COMMENT ON COLUMN duebook.discrepancy.batch_ref IS 'Batch, where one is concerned.';

COMMENT ON COLUMN duebook.discrepancy.entry_id IS 'Entry, where one is concerned.';

COMMENT ON COLUMN duebook.discrepancy.provider_minor IS 'What the provider says, minor units.';

COMMENT ON COLUMN duebook.discrepancy.ledger_minor IS 'What the books say, minor units.';

COMMENT ON COLUMN duebook.discrepancy.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook.discrepancy.detail IS 'What a reader needs to act: statuses, the other currency, the other payments.';

COMMENT ON COLUMN duebook.discrepancy.status IS 'open until gone (closed) or dealt with by a person: acknowledged, resolved, ignored, written_off.';

COMMENT ON COLUMN duebook.discrepancy.severity IS 'low, normal, high.';

COMMENT ON COLUMN duebook.discrepancy.first_seen_at IS 'As-of of the run that opened it first.';

COMMENT ON COLUMN duebook.discrepancy.last_seen_at IS 'As-of of the newest run that wrote it; while it is open every full run has seen it, and the report says so.';

COMMENT ON COLUMN duebook.discrepancy.closed_at IS 'When a run no longer saw it; null while open.';

COMMENT ON COLUMN duebook.discrepancy.opened_run_id IS 'Run that opened it, or reopened it.';

COMMENT ON COLUMN duebook.discrepancy.last_run_id IS 'Newest run that wrote it.';

COMMENT ON COLUMN duebook.discrepancy.times_opened IS 'Times it was opened.';

COMMENT ON COLUMN duebook.discrepancy.assignee IS 'Who works on it; null: nobody yet.';

COMMENT ON COLUMN duebook.discrepancy.decided_provider_minor IS 'What the provider said when it was ignored or written off: with other amounts it is open again.';

COMMENT ON COLUMN duebook.discrepancy.decided_ledger_minor IS 'What the books said then.';

COMMENT ON COLUMN duebook.discrepancy.decided_currency IS 'Currency of the amounts then.';

CREATE FUNCTION duebook.status_when_found(p_before duebook.discrepancy, p_provider_minor bigint, p_ledger_minor bigint, p_currency character) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
    select
        case
            when (p_before).status = 'acknowledged' then 'acknowledged'
            when
                (p_before).status in ('ignored', 'written_off')
                and (p_before).decided_provider_minor is not distinct from p_provider_minor
                and (p_before).decided_ledger_minor is not distinct from p_ledger_minor
                and (p_before).decided_currency is not distinct from p_currency
                then (p_before).status
            else 'open'
        end;
$$;

COMMENT ON FUNCTION duebook.status_when_found(p_before duebook.discrepancy, p_provider_minor bigint, p_ledger_minor bigint, p_currency character) IS 'Status of a discrepancy that a run finds, from the row before and the amounts that it finds now.';

CREATE FUNCTION duebook.suppress(p_account_id text, p_channel text, p_reason text, p_by text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
    if
        p_account_id is null or p_channel is null
        or pg_catalog.btrim(coalesce(p_reason, '')) = ''
        or pg_catalog.btrim(coalesce(p_by, '')) = ''
    then
        raise exception 'a suppression names account, channel, reason and who asks for it'
            using errcode = 'invalid_parameter_value';
    end if;
    insert into duebook.suppression (account_id, channel, reason, source)
    values (p_account_id, p_channel, p_reason, 'operator')
    on conflict do nothing;
    if not found then
        return 'known';
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'suppress', p_account_id, p_channel,
        pg_catalog.jsonb_build_object('reason', p_reason)
    );
    return 'suppressed';
end;
$$;

COMMENT ON FUNCTION duebook.suppress(p_account_id text, p_channel text, p_reason text, p_by text) IS 'Stops a channel for an account. Returns suppressed or known.';

CREATE FUNCTION duebook.sweep_paused_by() RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select i.name
    from duebook.incident as i
    where i.closed_at is null and i.pauses_sweep and i.resumed_at is null;
$$;

COMMENT ON FUNCTION duebook.sweep_paused_by() IS 'Name of the open incident that pauses the sweeps, until it is resumed; null when none does.';

CREATE FUNCTION duebook.take_catch_up_slots(p_paces text[], p_rates integer[], p_limits timestamp with time zone[], p_now timestamp with time zone) RETURNS timestamp with time zone[]
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_slots timestamptz[] := pg_catalog.array_fill(
        null::timestamptz, array[pg_catalog.cardinality(p_paces)]
    );
    v_pace text;
    v_next timestamptz;
    v_row record;
begin
    for v_pace in select distinct p.name from unnest(p_paces) as p (name) order by p.name loop
        insert into duebook.catch_up_pace (pace, next_at) values (v_pace, p_now)
        on conflict do nothing;
        select greatest(c.next_at, p_now) into strict v_next
        from duebook.catch_up_pace as c
        where c.pace = v_pace
        for update;
        for v_row in
            select m.position, m.limit_at, m.rate
            from unnest(p_paces, p_rates, p_limits) with ordinality
                as m (pace, rate, limit_at, position)
            where m.pace = v_pace
            order by m.position
        loop
            if v_next < v_row.limit_at then
                v_slots[v_row.position] := v_next;
                v_next := v_next + interval '1 minute' / v_row.rate;
            end if;
        end loop;
        update duebook.catch_up_pace as c set next_at = v_next where c.pace = v_pace;
    end loop;
    return v_slots;
end;
$$;

COMMENT ON FUNCTION duebook.take_catch_up_slots(p_paces text[], p_rates integer[], p_limits timestamp with time zone[], p_now timestamp with time zone) IS 'When each of some missed intents may be sent, in the order of the arrays, so that catching up keeps its rate; null where no slot is left before its limit.';

CREATE FUNCTION duebook.take_contact_slots(p_channel text, p_account_ids text[], p_intent_ids bigint[]) RETURNS TABLE(account_id text, intent_id bigint, free_at timestamp with time zone)
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
#variable_conflict use_column
declare
    v_row record;
    v_now timestamptz;
    v_free_at timestamptz;
    v_locked text := '';
begin
    for v_row in
        select w.account_id, w.intent_id
        from unnest(p_account_ids, p_intent_ids) with ordinality as w (account_id, intent_id, place)
        where not exists (
            select
            from duebook.contact_slot as s
            where s.account_id = w.account_id and s.intent_id = w.intent_id
        )
        order by w.account_id, w.place
    loop
        if v_row.account_id <> v_locked then
            -- Two senders must not see the same room; in order, so that they can't wait in a ring.
            perform pg_catalog.pg_advisory_xact_lock(
                pg_catalog.hashtextextended('duebook.contact_slot ' || v_row.account_id, 0)
            );
            v_locked := v_row.account_id;
            v_now := pg_catalog.clock_timestamp();
        end if;
        select pg_catalog.max(f.free_at) into v_free_at
        from duebook.contact_cap as c
        cross join lateral (
            -- Of the newest slots, the one that must have left before another fits.
            select s.taken_at + c.per as free_at
            from duebook.contact_slot as s
            where
                s.account_id = v_row.account_id
                and s.taken_at > v_now - c.per
                and c.channel in ('*', s.channel)
            order by s.taken_at desc
            offset c.most - 1
            limit 1
        ) as f
        where c.channel in ('*', p_channel);
        if v_free_at is null then
            insert into duebook.contact_slot (account_id, intent_id, channel, taken_at)
            values (v_row.account_id, v_row.intent_id, p_channel, v_now)
            on conflict do nothing;
        else
            account_id := v_row.account_id;
            intent_id := v_row.intent_id;
            free_at := v_free_at;
            return next;
        end if;
    end loop;
end;
$$;

COMMENT ON FUNCTION duebook.take_contact_slots(p_channel text, p_account_ids text[], p_intent_ids bigint[]) IS 'Enters messages that are about to be sent under the contact caps. Returns those without room, with the instant from which there is.';

CREATE FUNCTION duebook.unmatch(p_provider_account text, p_entry_id text, p_by text, p_reason text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
    v_account_id text;
begin
    if duebook.name_fault(p_by) is not null then
        raise exception 'by: %', duebook.name_fault(p_by) using errcode = 'check_violation';
    end if;
    if coalesce(pg_catalog.btrim(p_reason), '') = '' then
        raise exception 'reason: empty; expected why they do not belong together'
            using errcode = 'check_violation';
    end if;
    update duebook.forced_match as f
    set
        is_active = false,
        forced_by = p_by,
        reason = pg_catalog.btrim(p_reason),
        forced_at = pg_catalog.clock_timestamp(),
        applied_run_id = null
    where f.provider_account = p_provider_account and f.entry_id = p_entry_id and f.is_active
    returning f.account_id into v_account_id;
    if not found then
        raise exception 'entry % at % was not matched by hand', p_entry_id, p_provider_account
            using errcode = 'no_data_found';
    end if;
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'unmatch', v_account_id, 'entry:' || p_entry_id,
        pg_catalog.jsonb_build_object('provider_account', p_provider_account, 'reason', pg_catalog.btrim(p_reason))
    );
    return 'unmatched';
end;
$$;

COMMENT ON FUNCTION duebook.unmatch(p_provider_account text, p_entry_id text, p_by text, p_reason text) IS 'Takes a match by hand back; the next run matches the entry by its reference again. Returns unmatched.';

CREATE FUNCTION duebook.unsubscribe(p_account_id text, p_kind text, p_channel text, p_source text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
begin
    if exists (
        select
        from duebook.consent as c
        where
            c.account_id = p_account_id
            and c.kind = p_kind
            and c.channel = p_channel
            and not c.granted
    ) then
        return 'known';
    end if;
    return duebook.set_consent(p_account_id, p_kind, p_channel, false, p_source);
end;
$$;

COMMENT ON FUNCTION duebook.unsubscribe(p_account_id text, p_kind text, p_channel text, p_source text) IS 'A recipient leaves a topic by the link of a message. Returns recorded or known.';

CREATE FUNCTION duebook.whole_tokens(p_budget duebook.budget, p_at timestamp with time zone) RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
    select
        least(
            p_budget.capacity::numeric,
            greatest(
                0,
                pg_catalog.floor(
                    extract(epoch from p_at - p_budget.refilled_at)
                    * p_budget.refill_per_minute / 60
                )
            )
        )::bigint;
$$;

COMMENT ON FUNCTION duebook.whole_tokens(p_budget duebook.budget, p_at timestamp with time zone) IS 'Whole tokens that flowed into a budget since it was last counted, at most its capacity.';

CREATE TABLE duebook.alembic_version (
    version_num character varying(32) NOT NULL
);

COMMENT ON TABLE duebook.alembic_version IS 'The newest migration that this database was given.';

COMMENT ON COLUMN duebook.alembic_version.version_num IS 'Number of that migration.';

CREATE TABLE duebook.applied_object (
    path text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.applied_object IS 'Which SQL files this database was given, so that a changed function or view is applied again.';

COMMENT ON COLUMN duebook.applied_object.path IS 'The file, relative to sql/.';

COMMENT ON COLUMN duebook.applied_object.sha256 IS 'Digest of the file as it was applied.';

COMMENT ON COLUMN duebook.applied_object.applied_at IS 'When it was applied last.';

CREATE TABLE duebook.attempt (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    batch_id bigint NOT NULL,
    "position" integer NOT NULL,
    due_at timestamp with time zone NOT NULL,
    tries smallint NOT NULL,
    suspicions smallint NOT NULL,
    safe_retry_until timestamp with time zone,
    claimed_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.attempt IS 'One claim of one intent, written by the claim before anything is tried. Append-only.';

COMMENT ON COLUMN duebook.attempt.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.attempt.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.attempt.attempt_no IS 'Counts the claims of the intent, from 1.';

COMMENT ON COLUMN duebook.attempt.batch_id IS 'Batch it was claimed in.';

COMMENT ON COLUMN duebook.attempt."position" IS 'Its order there, from 0; a gap is a row that was set aside.';

COMMENT ON COLUMN duebook.attempt.due_at IS 'Its due time when claimed.';

COMMENT ON COLUMN duebook.attempt.tries IS 'Burnt tries before it.';

COMMENT ON COLUMN duebook.attempt.suspicions IS 'As in due, when claimed.';

COMMENT ON COLUMN duebook.attempt.safe_retry_until IS 'As in due, when claimed.';

COMMENT ON COLUMN duebook.attempt.claimed_at IS 'When.';

CREATE TABLE duebook.attempt_result (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    batch_id bigint NOT NULL,
    flush_no integer NOT NULL,
    result text NOT NULL,
    reason text,
    provider_code text,
    provider_message_id text,
    finished_at timestamp with time zone NOT NULL,
    is_late boolean DEFAULT false NOT NULL,
    CONSTRAINT result_is_known CHECK ((result = ANY (ARRAY['sent'::text, 'done'::text, 'expired'::text, 'deferred'::text, 'failed'::text, 'unknown'::text, 'held'::text, 'skipped'::text])))
);

COMMENT ON TABLE duebook.attempt_result IS 'How an attempt went, written by the flush. Append-only, one per attempt.';

COMMENT ON COLUMN duebook.attempt_result.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.attempt_result.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.attempt_result.attempt_no IS 'Attempt.';

COMMENT ON COLUMN duebook.attempt_result.batch_id IS 'Batch of the attempt.';

COMMENT ON COLUMN duebook.attempt_result.flush_no IS 'Flush that wrote it.';

COMMENT ON COLUMN duebook.attempt_result.result IS 'sent, done, expired end the key; deferred and failed go back to due; unknown is in doubt; held waits; skipped: not this sender''s any more.';

COMMENT ON COLUMN duebook.attempt_result.reason IS 'Why, in the gate''s words or the channel''s.';

COMMENT ON COLUMN duebook.attempt_result.provider_code IS 'Code of the provider''s answer.';

COMMENT ON COLUMN duebook.attempt_result.provider_message_id IS 'The provider''s id of the message.';

COMMENT ON COLUMN duebook.attempt_result.finished_at IS 'When the answer was there.';

COMMENT ON COLUMN duebook.attempt_result.is_late IS 'True when the batch had been rescued before the flush, or the key had ended otherwise.';

CREATE TABLE duebook.audit_event (
    audit_event_id bigint NOT NULL,
    happened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    account_id text,
    subject text,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL
);

COMMENT ON TABLE duebook.audit_event IS 'What the facts do not imply: decisions of the gate, policy changes, acts of operators. Append-only.';

COMMENT ON COLUMN duebook.audit_event.audit_event_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.audit_event.happened_at IS 'When.';

COMMENT ON COLUMN duebook.audit_event.actor IS 'Who: an operator, or the part of Duebook.';

COMMENT ON COLUMN duebook.audit_event.action IS 'What was done, as a verb.';

COMMENT ON COLUMN duebook.audit_event.account_id IS 'Customer account concerned, if one.';

COMMENT ON COLUMN duebook.audit_event.subject IS 'What it was done to: an operation key, a provider account, a kind.';

COMMENT ON COLUMN duebook.audit_event.detail IS 'Before, after and why. No amount, no address.';

ALTER TABLE duebook.audit_event ALTER COLUMN audit_event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.audit_event_audit_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE duebook.batch ALTER COLUMN batch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.batch_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.batch_ended (
    batch_id bigint NOT NULL,
    token uuid NOT NULL,
    sender text NOT NULL,
    how text NOT NULL,
    flush_no integer NOT NULL,
    size integer NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    safe_retry_until timestamp with time zone,
    untried_from integer,
    CONSTRAINT how_is_known CHECK ((how = ANY (ARRAY['finished'::text, 'rescued'::text, 'dismantled'::text])))
);

COMMENT ON TABLE duebook.batch_ended IS 'How each batch ended: lets a repeated last flush be recognised. Append-only.';

COMMENT ON COLUMN duebook.batch_ended.batch_id IS 'Batch.';

COMMENT ON COLUMN duebook.batch_ended.token IS 'Its token.';

COMMENT ON COLUMN duebook.batch_ended.sender IS 'Who held it.';

COMMENT ON COLUMN duebook.batch_ended.how IS 'finished by its holder, rescued after its lease, or dismantled intent by intent.';

COMMENT ON COLUMN duebook.batch_ended.flush_no IS 'Last flush that was applied.';

COMMENT ON COLUMN duebook.batch_ended.size IS 'Intents that it held.';

COMMENT ON COLUMN duebook.batch_ended.claimed_at IS 'When it was claimed.';

COMMENT ON COLUMN duebook.batch_ended.ended_at IS 'When it ended.';

COMMENT ON COLUMN duebook.batch_ended.safe_retry_until IS 'As in batch.';

COMMENT ON COLUMN duebook.batch_ended.untried_from IS 'For a rescued batch: attempts from this position on were never tried, with a result or without.';

CREATE TABLE duebook.calendar_state (
    only_row boolean DEFAULT true NOT NULL,
    tzdb_version text NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    recorded_by text NOT NULL,
    account_id text DEFAULT ''::text NOT NULL,
    intent_id bigint DEFAULT 0 NOT NULL,
    recomputed_at timestamp with time zone,
    CONSTRAINT calendar_state_has_one_row CHECK (only_row)
);

COMMENT ON TABLE duebook.calendar_state IS 'The newest time zone data that a sweep had here, and how far unclaimed occurrences are computed again with it. A process with older data computes nothing.';

COMMENT ON COLUMN duebook.calendar_state.only_row IS 'Always true: holds the table to one row.';

COMMENT ON COLUMN duebook.calendar_state.tzdb_version IS 'Its IANA version: 2026f.';

COMMENT ON COLUMN duebook.calendar_state.recorded_at IS 'Since when.';

COMMENT ON COLUMN duebook.calendar_state.recorded_by IS 'Which sender brought it.';

COMMENT ON COLUMN duebook.calendar_state.account_id IS 'Account up to which waiting rows were looked at.';

COMMENT ON COLUMN duebook.calendar_state.intent_id IS 'Intent of it up to which they were.';

COMMENT ON COLUMN duebook.calendar_state.recomputed_at IS 'When all of them were; null: it is going on.';

CREATE TABLE duebook.catch_up_pace (
    pace text NOT NULL,
    next_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

COMMENT ON TABLE duebook.catch_up_pace IS 'When the next missed intent of a kind may be sent, so that catching up keeps spread_per_minute however many senders there are. Locked only by windows that hold a missed intent.';

COMMENT ON COLUMN duebook.catch_up_pace.pace IS 'Kind whose rate it is.';

COMMENT ON COLUMN duebook.catch_up_pace.next_at IS 'First instant that no missed intent has been given yet.';

CREATE TABLE duebook.channel (
    channel text NOT NULL,
    enabled boolean NOT NULL,
    reason text,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.channel IS 'Channels switched by an operator; a channel without a row is enabled.';

COMMENT ON COLUMN duebook.channel.channel IS 'Name: email, noop.';

COMMENT ON COLUMN duebook.channel.enabled IS 'False: its intents end expired, channel_disabled.';

COMMENT ON COLUMN duebook.channel.reason IS 'Why it was switched.';

COMMENT ON COLUMN duebook.channel.updated_at IS 'When it was switched.';

CREATE TABLE duebook.claim_cursor (
    channel text NOT NULL,
    account_id text NOT NULL
)
WITH (fillfactor='50');

COMMENT ON TABLE duebook.claim_cursor IS 'Where the fair pass of the claims of a channel goes on. Losing it costs a round of fairness, nothing else.';

COMMENT ON COLUMN duebook.claim_cursor.channel IS 'Channel.';

COMMENT ON COLUMN duebook.claim_cursor.account_id IS 'Last account that was served.';

CREATE TABLE duebook.cohort (
    cohort_version integer NOT NULL,
    cohort text NOT NULL,
    place integer NOT NULL,
    mode text,
    provider_accounts text[],
    account_count integer,
    percent numeric(5,2),
    attribute text,
    attribute_values text[],
    stated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    stated_by text NOT NULL,
    CONSTRAINT attribute_has_values CHECK (((attribute IS NULL) = (attribute_values IS NULL))),
    CONSTRAINT attribute_is_known CHECK ((attribute = ANY (ARRAY['region'::text, 'locale'::text, 'zone'::text]))),
    CONSTRAINT cohort_is_valid CHECK ((cohort ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'::text)),
    CONSTRAINT cohort_mode_is_known CHECK ((mode = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text]))),
    CONSTRAINT percent_is_between_0_and_100 CHECK (((percent >= (0)::numeric) AND (percent <= (100)::numeric)))
);

COMMENT ON TABLE duebook.cohort IS 'Which customer accounts stand in which mode, every version of it; the newest of each name counts. All that a version states must fit. Append-only.';

COMMENT ON COLUMN duebook.cohort.cohort_version IS 'Identity, in the order of writing; stored with every intent that it decided.';

COMMENT ON COLUMN duebook.cohort.cohort IS 'Name, as in duebook.toml.';

COMMENT ON COLUMN duebook.cohort.place IS 'Its place in duebook.toml: the first cohort that fits an account decides.';

COMMENT ON COLUMN duebook.cohort.mode IS 'dry_run, shadow or live; null: from this version on there is no such cohort.';

COMMENT ON COLUMN duebook.cohort.provider_accounts IS 'Provider accounts whose changes it concerns; null: all.';

COMMENT ON COLUMN duebook.cohort.account_count IS 'How many accounts its list in cohort_member holds; null: not by list.';

COMMENT ON COLUMN duebook.cohort.percent IS 'Share of all accounts, by cohort_bucket() of its name and the account; null: not by share.';

COMMENT ON COLUMN duebook.cohort.attribute IS 'Attribute of the account''s contacts: region, locale or zone; null: not by attribute.';

COMMENT ON COLUMN duebook.cohort.attribute_values IS 'Values of it that fit.';

COMMENT ON COLUMN duebook.cohort.stated_at IS 'When it was applied.';

COMMENT ON COLUMN duebook.cohort.stated_by IS 'Who applied it.';

ALTER TABLE duebook.cohort ALTER COLUMN cohort_version ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.cohort_cohort_version_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.cohort_member (
    cohort_version integer NOT NULL,
    account_id text NOT NULL
);

COMMENT ON TABLE duebook.cohort_member IS 'The accounts of a cohort that is a list. Append-only.';

COMMENT ON COLUMN duebook.cohort_member.cohort_version IS 'Version of the cohort.';

COMMENT ON COLUMN duebook.cohort_member.account_id IS 'Customer account.';

CREATE TABLE duebook.consent (
    account_id text NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    granted boolean NOT NULL,
    source text NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.consent IS 'A decision of the recipient; without a row transactional notices are allowed.';

COMMENT ON COLUMN duebook.consent.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.consent.kind IS 'Kind of notice, or * for every kind.';

COMMENT ON COLUMN duebook.consent.channel IS 'Channel, or * for every channel.';

COMMENT ON COLUMN duebook.consent.granted IS 'False: ends expired, opted_out.';

COMMENT ON COLUMN duebook.consent.source IS 'Where the decision came from.';

COMMENT ON COLUMN duebook.consent.decided_at IS 'When it was taken.';

CREATE TABLE duebook.contact (
    account_id text NOT NULL,
    channel text NOT NULL,
    address text NOT NULL,
    zone text NOT NULL,
    locale text DEFAULT 'en'::text NOT NULL,
    region text,
    imported_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_id_is_valid CHECK (((char_length(account_id) >= 1) AND (char_length(account_id) <= 200)))
);

COMMENT ON TABLE duebook.contact IS 'Where one account is told, by channel. Personal data: analysts never see it.';

COMMENT ON COLUMN duebook.contact.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.contact.channel IS 'Channel of the address.';

COMMENT ON COLUMN duebook.contact.address IS 'E-mail address or number. Never logged.';

COMMENT ON COLUMN duebook.contact.zone IS 'IANA zone of the recipient.';

COMMENT ON COLUMN duebook.contact.locale IS 'Language of the message.';

COMMENT ON COLUMN duebook.contact.region IS 'Region whose quiet hours apply.';

COMMENT ON COLUMN duebook.contact.imported_at IS 'When it was last changed by an import.';

CREATE TABLE duebook.contact_cap (
    channel text NOT NULL,
    most integer NOT NULL,
    per interval NOT NULL,
    CONSTRAINT cap_is_positive CHECK (((most > 0) AND (per > '00:00:00'::interval)))
);

COMMENT ON TABLE duebook.contact_cap IS 'The most messages that one account is sent in a time; critical kinds are not counted and not held back.';

COMMENT ON COLUMN duebook.contact_cap.channel IS 'Channel that it counts, * for all channels together.';

COMMENT ON COLUMN duebook.contact_cap.most IS 'Most messages.';

COMMENT ON COLUMN duebook.contact_cap.per IS 'In any time of this length.';

CREATE TABLE duebook.contact_slot (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    channel text NOT NULL,
    taken_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.contact_slot IS 'Messages that a contact cap counts, each entered before it is sent; removed once no cap looks back so far.';

COMMENT ON COLUMN duebook.contact_slot.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.contact_slot.intent_id IS 'Intent; of a digest the first.';

COMMENT ON COLUMN duebook.contact_slot.channel IS 'Channel.';

COMMENT ON COLUMN duebook.contact_slot.taken_at IS 'When it was allowed.';

CREATE TABLE duebook.currency_exponent (
    provider text NOT NULL,
    currency character(3) NOT NULL,
    exponent smallint NOT NULL,
    CONSTRAINT currency_is_upper_case CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT exponent_is_between_0_and_4 CHECK (((exponent >= 0) AND (exponent <= 4)))
);

COMMENT ON TABLE duebook.currency_exponent IS 'How many decimals one major unit has; provider * is ISO 4217, a provider of its own row differs from it. A currency without a row is unknown and its rows go to quarantine.';

COMMENT ON COLUMN duebook.currency_exponent.provider IS 'Provider, or * for all that have no row of their own.';

COMMENT ON COLUMN duebook.currency_exponent.currency IS 'ISO 4217 code, upper case.';

COMMENT ON COLUMN duebook.currency_exponent.exponent IS 'Decimals: 2 for EUR, 0 for JPY, 3 for KWD.';

CREATE TABLE duebook.delivery_report (
    delivery_report_id bigint NOT NULL,
    channel text NOT NULL,
    provider_message_id text NOT NULL,
    status text NOT NULL,
    code text,
    suppression text,
    reported_at timestamp with time zone NOT NULL,
    received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    source text NOT NULL,
    CONSTRAINT report_status_is_known CHECK ((status = ANY (ARRAY['delivered'::text, 'delayed'::text, 'failed'::text, 'complained'::text])))
);

COMMENT ON TABLE duebook.delivery_report IS 'What a provider said later of a message that it had accepted. Append-only; the same again is one row.';

COMMENT ON COLUMN duebook.delivery_report.delivery_report_id IS 'Identity.';

COMMENT ON COLUMN duebook.delivery_report.channel IS 'Channel account that sent the message.';

COMMENT ON COLUMN duebook.delivery_report.provider_message_id IS 'The message, as in attempt_result.provider_message_id.';

COMMENT ON COLUMN duebook.delivery_report.status IS 'delivered, delayed (still tried), failed (given up), complained (said to be unwanted).';

COMMENT ON COLUMN duebook.delivery_report.code IS 'The provider''s code, such as an enhanced status of RFC 3463; null: it gave none.';

COMMENT ON COLUMN duebook.delivery_report.suppression IS 'Why nothing more is to be sent to this address; null: it may be.';

COMMENT ON COLUMN duebook.delivery_report.reported_at IS 'When the provider says it was so.';

COMMENT ON COLUMN duebook.delivery_report.received_at IS 'When it was told.';

COMMENT ON COLUMN duebook.delivery_report.source IS 'How it was told: dsn, arf, callback.';

ALTER TABLE duebook.delivery_report ALTER COLUMN delivery_report_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.delivery_report_delivery_report_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.digest (
    account_id text NOT NULL,
    digest_key text NOT NULL,
    channel text NOT NULL,
    intent_ids bigint[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT digest_has_members CHECK ((cardinality(intent_ids) > 1))
);

COMMENT ON TABLE duebook.digest IS 'Several notices in one message: who is in it was fixed before anything was sent. Append-only.';

COMMENT ON COLUMN duebook.digest.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.digest.digest_key IS 'Its own key, made from those of its members; the message is identified by it.';

COMMENT ON COLUMN duebook.digest.channel IS 'Channel.';

COMMENT ON COLUMN duebook.digest.intent_ids IS 'Intents in their order; each has an outcome of its own.';

COMMENT ON COLUMN duebook.digest.created_at IS 'When it was fixed.';

CREATE TABLE duebook.digest_member (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    digest_key text NOT NULL
);

COMMENT ON TABLE duebook.digest_member IS 'Attempts that were made by a digest. Append-only.';

COMMENT ON COLUMN duebook.digest_member.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.digest_member.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.digest_member.attempt_no IS 'Attempt.';

COMMENT ON COLUMN duebook.digest_member.digest_key IS 'Digest that it went in.';

CREATE TABLE duebook.discrepancy_event (
    event_id bigint NOT NULL,
    provider_account text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    act text NOT NULL,
    actor text NOT NULL,
    reason text,
    assignee text,
    status_before text,
    status_after text NOT NULL,
    provider_minor bigint,
    ledger_minor bigint,
    currency character(3),
    run_id bigint,
    CONSTRAINT act_is_known CHECK ((act = ANY (ARRAY['opened'::text, 'changed'::text, 'closed'::text, 'reopened'::text, 'acknowledge'::text, 'assign'::text, 'resolve'::text, 'ignore'::text, 'write_off'::text, 'reopen'::text])))
);

COMMENT ON TABLE duebook.discrepancy_event IS 'What became of each discrepancy: what runs found (opened, changed, closed, reopened) and what people did, with who and why. Append-only.';

COMMENT ON COLUMN duebook.discrepancy_event.event_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.discrepancy_event.provider_account IS 'Account of the discrepancy.';

COMMENT ON COLUMN duebook.discrepancy_event.kind IS 'Its kind.';

COMMENT ON COLUMN duebook.discrepancy_event.subject IS 'Its subject.';

COMMENT ON COLUMN duebook.discrepancy_event.at IS 'When.';

COMMENT ON COLUMN duebook.discrepancy_event.act IS 'opened, changed, closed, reopened by a run; acknowledge, assign, resolve, ignore, write_off, reopen by a person.';

COMMENT ON COLUMN duebook.discrepancy_event.actor IS 'Who: a person, or reconcile.';

COMMENT ON COLUMN duebook.discrepancy_event.reason IS 'Why, as the person wrote it.';

COMMENT ON COLUMN duebook.discrepancy_event.assignee IS 'Who works on it from here on.';

COMMENT ON COLUMN duebook.discrepancy_event.status_before IS 'Status before; null when it was opened first.';

COMMENT ON COLUMN duebook.discrepancy_event.status_after IS 'Status after.';

COMMENT ON COLUMN duebook.discrepancy_event.provider_minor IS 'What the provider says then, minor units.';

COMMENT ON COLUMN duebook.discrepancy_event.ledger_minor IS 'What the books say then, minor units.';

COMMENT ON COLUMN duebook.discrepancy_event.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook.discrepancy_event.run_id IS 'Run that found it; null for a person''s act.';

ALTER TABLE duebook.discrepancy_event ALTER COLUMN event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.discrepancy_event_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.due (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    tries smallint DEFAULT 0 NOT NULL,
    suspicions smallint DEFAULT 0 NOT NULL,
    claims integer DEFAULT 0 NOT NULL,
    safe_retry_until timestamp with time zone
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');

COMMENT ON TABLE duebook.due IS 'Scheduled: intents waiting for their time, slim and hot. A claim deletes from here.';

COMMENT ON COLUMN duebook.due.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.due.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.due.due_at IS 'When it may be claimed.';

COMMENT ON COLUMN duebook.due.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.due.channel IS 'Channel, as in intent.';

COMMENT ON COLUMN duebook.due.give_up_at IS 'As in intent.';

COMMENT ON COLUMN duebook.due.tries IS 'Burnt tries: sends that were tried and failed.';

COMMENT ON COLUMN duebook.due.suspicions IS 'Rescued batches in whose first unresulted window it stood; from 2 on it is claimed alone.';

COMMENT ON COLUMN duebook.due.claims IS 'Claims so far, sends or not.';

COMMENT ON COLUMN duebook.due.safe_retry_until IS 'Set when an earlier try may have been accepted: until when the channel recognises its repeat.';

CREATE TABLE duebook.entry_allocation (
    provider_account text NOT NULL,
    entry_id text NOT NULL,
    account_id text NOT NULL,
    payment_id text NOT NULL,
    gross_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    run_id bigint NOT NULL
);

COMMENT ON TABLE duebook.entry_allocation IS 'The shares of an entry that pays several booked payments at once: in proportion to what each expects, and together the whole entry.';

COMMENT ON COLUMN duebook.entry_allocation.provider_account IS 'Provider account of the entry.';

COMMENT ON COLUMN duebook.entry_allocation.entry_id IS 'Entry; its reference is the group''s.';

COMMENT ON COLUMN duebook.entry_allocation.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.entry_allocation.payment_id IS 'Booked payment of the group.';

COMMENT ON COLUMN duebook.entry_allocation.gross_minor IS 'Its share of the gross, minor units of the entry''s currency.';

COMMENT ON COLUMN duebook.entry_allocation.fee_minor IS 'Its share of the fee, minor units of the entry''s net currency.';

COMMENT ON COLUMN duebook.entry_allocation.net_minor IS 'Its share of the net, minor units of the entry''s net currency.';

COMMENT ON COLUMN duebook.entry_allocation.run_id IS 'Run that shared it.';

CREATE TABLE duebook.environment (
    only_row boolean DEFAULT true NOT NULL,
    name text NOT NULL,
    is_test boolean NOT NULL,
    system_identifier bigint NOT NULL,
    database_oid oid NOT NULL,
    accepted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    accepted_by text NOT NULL,
    CONSTRAINT environment_has_one_row CHECK (only_row),
    CONSTRAINT environment_name_is_valid CHECK ((name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'::text))
);

COMMENT ON TABLE duebook.environment IS 'The one environment this database was accepted for. A copied database differs in cluster or oid and refuses to send until it is accepted again.';

COMMENT ON COLUMN duebook.environment.only_row IS 'Always true: holds the table to one row.';

COMMENT ON COLUMN duebook.environment.name IS 'Name of the environment; senders started under another name refuse to send.';

COMMENT ON COLUMN duebook.environment.is_test IS 'True where a shifted clock (sweep --now) is allowed.';

COMMENT ON COLUMN duebook.environment.system_identifier IS 'Cluster that was accepted (pg_control_system).';

COMMENT ON COLUMN duebook.environment.database_oid IS 'Database of that cluster that was accepted (pg_database.oid).';

COMMENT ON COLUMN duebook.environment.accepted_at IS 'When it was accepted.';

COMMENT ON COLUMN duebook.environment.accepted_by IS 'Who accepted it.';

CREATE TABLE duebook.event_effect (
    provider_account text NOT NULL,
    event_id text NOT NULL,
    effect text NOT NULL,
    reason text,
    run_id bigint,
    happened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT effect_is_known CHECK ((effect = ANY (ARRAY['read'::text, 'ignored'::text, 'given_up'::text])))
);

COMMENT ON TABLE duebook.event_effect IS 'What an event led to, once for its provider account whatever endpoints it came by. Append-only.';

COMMENT ON COLUMN duebook.event_effect.provider_account IS 'Provider account.';

COMMENT ON COLUMN duebook.event_effect.event_id IS 'Event.';

COMMENT ON COLUMN duebook.event_effect.effect IS 'read: its payments went through the diff; ignored: it is about none; given_up: a person is needed.';

COMMENT ON COLUMN duebook.event_effect.reason IS 'Why it was ignored or given up. No body.';

COMMENT ON COLUMN duebook.event_effect.run_id IS 'Run that read it.';

COMMENT ON COLUMN duebook.event_effect.happened_at IS 'When.';

CREATE TABLE duebook.fail_over (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    to_intent_id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.fail_over IS 'Intents that were refused for good, and those that took their place on another channel. Append-only.';

COMMENT ON COLUMN duebook.fail_over.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.fail_over.intent_id IS 'Refused intent.';

COMMENT ON COLUMN duebook.fail_over.to_intent_id IS 'The same notice on the next channel.';

COMMENT ON COLUMN duebook.fail_over.at IS 'When.';

CREATE TABLE duebook.failing_contact (
    account_id text NOT NULL,
    channel text NOT NULL,
    failing_since timestamp with time zone NOT NULL,
    last_failed_at timestamp with time zone NOT NULL,
    failures integer NOT NULL
);

COMMENT ON TABLE duebook.failing_contact IS 'Contacts at which every send fails since some time; the first success removes the row. Without it the time only starts anew.';

COMMENT ON COLUMN duebook.failing_contact.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.failing_contact.channel IS 'Channel of the address.';

COMMENT ON COLUMN duebook.failing_contact.failing_since IS 'First failure of those that followed each other within a day.';

COMMENT ON COLUMN duebook.failing_contact.last_failed_at IS 'Newest of them.';

COMMENT ON COLUMN duebook.failing_contact.failures IS 'How many they are.';

CREATE TABLE duebook.forced_match (
    provider_account text NOT NULL,
    entry_id text NOT NULL,
    account_id text NOT NULL,
    payment_id text NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    forced_by text NOT NULL,
    reason text NOT NULL,
    forced_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    applied_run_id bigint
);

COMMENT ON TABLE duebook.forced_match IS 'An entry that a person matched with a payment, whatever its reference says; the next run of the provider account applies it. Each act is an audit event.';

COMMENT ON COLUMN duebook.forced_match.provider_account IS 'Account of the entry.';

COMMENT ON COLUMN duebook.forced_match.entry_id IS 'Entry.';

COMMENT ON COLUMN duebook.forced_match.account_id IS 'Customer account of the payment.';

COMMENT ON COLUMN duebook.forced_match.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook.forced_match.is_active IS 'False: taken back; the entry is matched by its reference again.';

COMMENT ON COLUMN duebook.forced_match.forced_by IS 'Who did it, or took it back.';

COMMENT ON COLUMN duebook.forced_match.reason IS 'Why.';

COMMENT ON COLUMN duebook.forced_match.forced_at IS 'When.';

COMMENT ON COLUMN duebook.forced_match.applied_run_id IS 'Run that applied it; null: the next one will.';

CREATE TABLE duebook.held (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    cause text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    tries smallint NOT NULL,
    claims integer NOT NULL,
    suspicions smallint DEFAULT 0 NOT NULL,
    safe_retry_until timestamp with time zone,
    detail text,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    retest_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.held IS 'Held: waits for its cause to clear; each sweep tests it again, and it ends too_late at its limit.';

COMMENT ON COLUMN duebook.held.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.held.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.held.cause IS 'no_contact, no_consent, template, zone_unknown, kind_unknown, paused, environment, poison, attempt_conflict, rescue_failed.';

COMMENT ON COLUMN duebook.held.due_at IS 'Due time it goes back with.';

COMMENT ON COLUMN duebook.held.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.held.channel IS 'Channel, as in intent.';

COMMENT ON COLUMN duebook.held.give_up_at IS 'As in intent.';

COMMENT ON COLUMN duebook.held.tries IS 'Burnt tries so far.';

COMMENT ON COLUMN duebook.held.claims IS 'Claims so far.';

COMMENT ON COLUMN duebook.held.suspicions IS 'As in due.';

COMMENT ON COLUMN duebook.held.safe_retry_until IS 'As in due.';

COMMENT ON COLUMN duebook.held.detail IS 'What the cause needs: the template''s field, the zone''s name. No address, no amount.';

COMMENT ON COLUMN duebook.held.since IS 'Since when.';

COMMENT ON COLUMN duebook.held.retest_at IS 'When it is tested next.';

CREATE TABLE duebook.in_doubt (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    attempt_no integer NOT NULL,
    batch_id bigint NOT NULL,
    cause text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    tries smallint NOT NULL,
    claims integer NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    look_up_from timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.in_doubt IS 'Unknown: the provider may have accepted. Never resent blindly.';

COMMENT ON COLUMN duebook.in_doubt.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.in_doubt.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.in_doubt.attempt_no IS 'Attempt whose end is not known.';

COMMENT ON COLUMN duebook.in_doubt.batch_id IS 'Batch of that attempt.';

COMMENT ON COLUMN duebook.in_doubt.cause IS 'Why: sender_died, retry_unsafe, rescue_failed, restored (a restore may have taken back that it was sent), or the code of the channel.';

COMMENT ON COLUMN duebook.in_doubt.due_at IS 'Its due time when it was claimed.';

COMMENT ON COLUMN duebook.in_doubt.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.in_doubt.channel IS 'Channel, as in intent.';

COMMENT ON COLUMN duebook.in_doubt.give_up_at IS 'As in intent.';

COMMENT ON COLUMN duebook.in_doubt.tries IS 'Burnt tries so far.';

COMMENT ON COLUMN duebook.in_doubt.claims IS 'Claims so far.';

COMMENT ON COLUMN duebook.in_doubt.since IS 'Since when.';

COMMENT ON COLUMN duebook.in_doubt.look_up_from IS 'A look-up''s "not known" counts only from here on.';

CREATE TABLE duebook.incident (
    incident_id bigint NOT NULL,
    name text NOT NULL,
    reason text NOT NULL,
    pauses_sweep boolean NOT NULL,
    oldest_due_band interval NOT NULL,
    opened_by text NOT NULL,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    resumed_by text,
    resumed_at timestamp with time zone,
    policies jsonb DEFAULT '[]'::jsonb NOT NULL,
    samples jsonb DEFAULT '[]'::jsonb NOT NULL,
    closed_by text,
    closed_at timestamp with time zone,
    report jsonb,
    CONSTRAINT band_is_positive CHECK ((oldest_due_band > '00:00:00'::interval)),
    CONSTRAINT closing_has_a_report CHECK (((closed_at IS NULL) = (report IS NULL))),
    CONSTRAINT incident_name_is_valid CHECK ((name ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'::text))
);

COMMENT ON TABLE duebook.incident IS 'From open to close of what an operator handles. While one is open, manual replay is refused.';

COMMENT ON COLUMN duebook.incident.incident_id IS 'Identity.';

COMMENT ON COLUMN duebook.incident.name IS 'Its name, said in every refusal.';

COMMENT ON COLUMN duebook.incident.reason IS 'What happened.';

COMMENT ON COLUMN duebook.incident.pauses_sweep IS 'Whether sweeps claim nothing until it is resumed.';

COMMENT ON COLUMN duebook.incident.oldest_due_band IS 'It can be closed only when nothing has been due for longer than this.';

COMMENT ON COLUMN duebook.incident.opened_by IS 'Who opened it.';

COMMENT ON COLUMN duebook.incident.opened_at IS 'When.';

COMMENT ON COLUMN duebook.incident.resumed_by IS 'Who let the sweeps go on.';

COMMENT ON COLUMN duebook.incident.resumed_at IS 'When.';

COMMENT ON COLUMN duebook.incident.policies IS 'Catch-up policies of what was due, as they stood when it was resumed.';

COMMENT ON COLUMN duebook.incident.samples IS 'How the backlog fell, as a resume saw it: instant, due, oldest, in doubt, sent.';

COMMENT ON COLUMN duebook.incident.closed_by IS 'Who closed it.';

COMMENT ON COLUMN duebook.incident.closed_at IS 'When.';

COMMENT ON COLUMN duebook.incident.report IS 'What it came to: policies that applied, due rows beside their outcomes, what is in doubt.';

ALTER TABLE duebook.incident ALTER COLUMN incident_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.incident_incident_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.incident_intent (
    incident_id bigint NOT NULL,
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.incident_intent IS 'What was due and not ended when an incident was opened or resumed: each has to come to an end or stand somewhere.';

COMMENT ON COLUMN duebook.incident_intent.incident_id IS 'Incident.';

COMMENT ON COLUMN duebook.incident_intent.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.incident_intent.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.incident_intent.due_at IS 'Its due time then.';

CREATE TABLE duebook.intent (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    operation_key text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    payment_id text,
    channel text NOT NULL,
    notify_at timestamp with time zone NOT NULL,
    give_up_at timestamp with time zone NOT NULL,
    provider_account text,
    run_id bigint,
    change_id bigint,
    ownership text NOT NULL,
    cohort_version integer DEFAULT 0 NOT NULL,
    intended_local timestamp without time zone,
    zone text,
    tzdb_version text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT give_up_is_after_notify CHECK ((give_up_at > notify_at)),
    CONSTRAINT ownership_is_known CHECK ((ownership = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text])))
);

COMMENT ON TABLE duebook.intent IS 'Something promised to an account. Immutable; a later due time is an intent_change.';

COMMENT ON COLUMN duebook.intent.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.intent.intent_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.intent.operation_key IS 'The idempotency key, from the business action and its occurrence.';

COMMENT ON COLUMN duebook.intent.kind IS 'Kind, see intent_kind.';

COMMENT ON COLUMN duebook.intent.subject IS 'What it is about: payment:<payment>.';

COMMENT ON COLUMN duebook.intent.payment_id IS 'Payment it is about, if one.';

COMMENT ON COLUMN duebook.intent.channel IS 'Channel that is to carry it.';

COMMENT ON COLUMN duebook.intent.notify_at IS 'UTC instant at which it was promised to become due.';

COMMENT ON COLUMN duebook.intent.give_up_at IS 'From here on it is too late.';

COMMENT ON COLUMN duebook.intent.provider_account IS 'Provider account whose evidence made it.';

COMMENT ON COLUMN duebook.intent.run_id IS 'Run that made it.';

COMMENT ON COLUMN duebook.intent.change_id IS 'Ledger change that made it.';

COMMENT ON COLUMN duebook.intent.ownership IS 'Mode in force when the change committed; decides whose key it is, unless it was moved by name (ownership_change).';

COMMENT ON COLUMN duebook.intent.cohort_version IS 'Version of the cohort that decided the mode; 0: the account''s own mode.';

COMMENT ON COLUMN duebook.intent.intended_local IS 'Nominal local time, for promises on a calendar.';

COMMENT ON COLUMN duebook.intent.zone IS 'Zone of the nominal local time.';

COMMENT ON COLUMN duebook.intent.tzdb_version IS 'Time zone data that computed notify_at.';

COMMENT ON COLUMN duebook.intent.created_at IS 'When it was written.';

CREATE TABLE duebook.intent_change (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    intent_change_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    tzdb_version text,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.intent_change IS 'A later due time of an intent; the newest counts. Append-only.';

COMMENT ON COLUMN duebook.intent_change.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.intent_change.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.intent_change.intent_change_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.intent_change.due_at IS 'New due time.';

COMMENT ON COLUMN duebook.intent_change.reason IS 'Why: quiet_hours, budget, retry, repeat (it may have been received, and its receiver knows a repeat), tzdb, edited, resolved (what was in doubt was not sent).';

COMMENT ON COLUMN duebook.intent_change.tzdb_version IS 'Time zone data that computed it.';

COMMENT ON COLUMN duebook.intent_change.changed_at IS 'When.';

ALTER TABLE duebook.intent_change ALTER COLUMN intent_change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.intent_change_intent_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE duebook.intent ALTER COLUMN intent_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.intent_intent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.intent_kind (
    kind text NOT NULL,
    enabled boolean NOT NULL,
    channel text NOT NULL,
    notify_after interval NOT NULL,
    give_up_after interval NOT NULL,
    is_superseded boolean NOT NULL,
    catch_up text NOT NULL,
    catch_up_window interval NOT NULL,
    max_occurrences integer NOT NULL,
    spread_per_minute integer NOT NULL,
    max_tries smallint NOT NULL,
    max_claims smallint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    may_unsubscribe boolean DEFAULT false NOT NULL,
    is_critical boolean DEFAULT false NOT NULL,
    digest_within interval,
    digest_most integer,
    fail_over text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT catch_up_is_known CHECK ((catch_up = ANY (ARRAY['all'::text, 'latest'::text, 'skip'::text]))),
    CONSTRAINT catch_up_window_is_two_sweeps CHECK ((catch_up_window >= '00:02:00'::interval)),
    CONSTRAINT digest_is_whole_or_absent CHECK ((((digest_within IS NULL) = (digest_most IS NULL)) AND (digest_within >= '00:00:00'::interval) AND ((digest_most >= 2) AND (digest_most <= 1000)))),
    CONSTRAINT give_up_after_is_positive CHECK ((give_up_after > '00:00:00'::interval)),
    CONSTRAINT kind_is_valid CHECK ((kind ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
    CONSTRAINT limits_are_positive CHECK (((max_tries > 0) AND (max_claims > 0))),
    CONSTRAINT max_occurrences_is_positive CHECK ((max_occurrences > 0)),
    CONSTRAINT notify_after_is_not_negative CHECK ((notify_after >= '00:00:00'::interval)),
    CONSTRAINT spread_is_positive CHECK ((spread_per_minute > 0))
);

COMMENT ON TABLE duebook.intent_kind IS 'What is promised, by kind, with its policy; nothing here has a default in code.';

COMMENT ON COLUMN duebook.intent_kind.kind IS 'payment_settled, payment_refunded, payment_disputed, payment_missing, payment_cleared.';

COMMENT ON COLUMN duebook.intent_kind.enabled IS 'Whether ledger changes make intents of this kind.';

COMMENT ON COLUMN duebook.intent_kind.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook.intent_kind.notify_after IS 'Told this long after the change was committed.';

COMMENT ON COLUMN duebook.intent_kind.give_up_after IS 'Too late this long after notify_at: ends expired, too_late.';

COMMENT ON COLUMN duebook.intent_kind.is_superseded IS 'Whether newer evidence on the same payment ends an unsent one.';

COMMENT ON COLUMN duebook.intent_kind.catch_up IS 'What happens to missed ones: all, latest or skip.';

COMMENT ON COLUMN duebook.intent_kind.catch_up_window IS 'How old a missed one may be and still be sent.';

COMMENT ON COLUMN duebook.intent_kind.max_occurrences IS 'At most so many missed ones of one subject are sent.';

COMMENT ON COLUMN duebook.intent_kind.spread_per_minute IS 'Rate while catching up.';

COMMENT ON COLUMN duebook.intent_kind.max_tries IS 'Burnt tries before it ends expired, exhausted.';

COMMENT ON COLUMN duebook.intent_kind.max_claims IS 'Claims without any result before it is held as poison.';

COMMENT ON COLUMN duebook.intent_kind.updated_at IS 'When it was last changed.';

COMMENT ON COLUMN duebook.intent_kind.may_unsubscribe IS 'Whether its messages say how to leave the topic (RFC 8058).';

COMMENT ON COLUMN duebook.intent_kind.is_critical IS 'Whether the contact cap does not hold it back.';

COMMENT ON COLUMN duebook.intent_kind.digest_within IS 'Notices of one account that are due within this go in one message; null: each in its own.';

COMMENT ON COLUMN duebook.intent_kind.digest_most IS 'Most notices of one message.';

COMMENT ON COLUMN duebook.intent_kind.fail_over IS 'Channels that are tried in turn once one has refused for good.';

CREATE TABLE duebook.intent_request (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    intent_request_id bigint NOT NULL,
    request text NOT NULL,
    reason text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT request_is_known CHECK ((request = ANY (ARRAY['cancel'::text, 'supersede'::text, 'opt_out'::text])))
);

COMMENT ON TABLE duebook.intent_request IS 'A wish to end an intent that a batch holds; the gate reads it before the next window. Append-only.';

COMMENT ON COLUMN duebook.intent_request.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.intent_request.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.intent_request.intent_request_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.intent_request.request IS 'cancel, supersede or opt_out.';

COMMENT ON COLUMN duebook.intent_request.reason IS 'Why.';

COMMENT ON COLUMN duebook.intent_request.requested_by IS 'Who.';

COMMENT ON COLUMN duebook.intent_request.requested_at IS 'When.';

ALTER TABLE duebook.intent_request ALTER COLUMN intent_request_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.intent_request_intent_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE duebook.ledger_change ALTER COLUMN change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.ledger_change_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.ledger_payment (
    account_id text NOT NULL,
    payment_id text NOT NULL,
    reference text NOT NULL,
    amount_minor bigint NOT NULL,
    currency character(3) NOT NULL,
    booked_status text NOT NULL,
    expected_at timestamp with time zone NOT NULL,
    provider_account text,
    is_void boolean DEFAULT false NOT NULL,
    booked_version integer DEFAULT 1 NOT NULL,
    imported_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    imported_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    group_reference text,
    CONSTRAINT account_id_is_valid CHECK (((char_length(account_id) >= 1) AND (char_length(account_id) <= 200))),
    CONSTRAINT group_reference_is_valid CHECK (((char_length(group_reference) >= 1) AND (char_length(group_reference) <= 200))),
    CONSTRAINT payment_id_is_valid CHECK (((char_length(payment_id) >= 1) AND (char_length(payment_id) <= 200))),
    CONSTRAINT reference_is_valid CHECK (((char_length(reference) >= 1) AND (char_length(reference) <= 200)))
);

COMMENT ON TABLE duebook.ledger_payment IS 'The booked side of a payment: what the books expect. Written only by ledger import; runs only lock it.';

COMMENT ON COLUMN duebook.ledger_payment.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.ledger_payment.payment_id IS 'Payment, unique within the account.';

COMMENT ON COLUMN duebook.ledger_payment.reference IS 'Reference that settlement entries carry.';

COMMENT ON COLUMN duebook.ledger_payment.amount_minor IS 'Expected amount, minor units.';

COMMENT ON COLUMN duebook.ledger_payment.currency IS 'Its currency.';

COMMENT ON COLUMN duebook.ledger_payment.booked_status IS 'Status as the books say it, lower case.';

COMMENT ON COLUMN duebook.ledger_payment.expected_at IS 'When the settlement is expected.';

COMMENT ON COLUMN duebook.ledger_payment.provider_account IS 'Provider account that is to settle it; null: unrouted, never missing.';

COMMENT ON COLUMN duebook.ledger_payment.is_void IS 'True: the books cancelled it.';

COMMENT ON COLUMN duebook.ledger_payment.booked_version IS 'Counts changes by imports.';

COMMENT ON COLUMN duebook.ledger_payment.imported_at IS 'When it was last changed by an import.';

COMMENT ON COLUMN duebook.ledger_payment.imported_xid IS 'Transaction of that import: a run finds by it what it has not seen, in whatever order imports commit.';

COMMENT ON COLUMN duebook.ledger_payment.group_reference IS 'What is paid together with others in one go, such as an order of several invoices: an entry with this reference is shared among them; null: nothing.';

CREATE TABLE duebook.observed_send (
    observed_send_id bigint NOT NULL,
    sender text NOT NULL,
    source text NOT NULL,
    external_id text NOT NULL,
    account_id text NOT NULL,
    operation_key text,
    kind text,
    channel text,
    payment_id text,
    sent_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT observed_source_is_known CHECK ((source = ANY (ARRAY['asked'::text, 'reported'::text, 'file'::text, 'query'::text, 'webhook'::text]))),
    CONSTRAINT send_names_its_key_or_its_payment CHECK (((operation_key IS NOT NULL) OR ((kind IS NOT NULL) AND (payment_id IS NOT NULL))))
);

COMMENT ON TABLE duebook.observed_send IS 'What an old sender sent, by its own word. Evidence for the comparison in shadow. Append-only.';

COMMENT ON COLUMN duebook.observed_send.observed_send_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.observed_send.sender IS 'Old sender.';

COMMENT ON COLUMN duebook.observed_send.source IS 'How it was learnt: asked (ask_to_send), reported (record_observed_send), file, query or webhook.';

COMMENT ON COLUMN duebook.observed_send.external_id IS 'Its own id of the send; told again it is the same send.';

COMMENT ON COLUMN duebook.observed_send.account_id IS 'Customer account that was told.';

COMMENT ON COLUMN duebook.observed_send.operation_key IS 'Operation key, where the old sender makes them; else kind, channel and payment say what it was.';

COMMENT ON COLUMN duebook.observed_send.kind IS 'Kind of notice, as in intent_kind.';

COMMENT ON COLUMN duebook.observed_send.channel IS 'Channel that carried it; null: not told.';

COMMENT ON COLUMN duebook.observed_send.payment_id IS 'Payment it was about.';

COMMENT ON COLUMN duebook.observed_send.sent_at IS 'When it was sent; of one that asked, when it was allowed to.';

COMMENT ON COLUMN duebook.observed_send.recorded_at IS 'When we learnt it.';

ALTER TABLE duebook.observed_send ALTER COLUMN observed_send_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.observed_send_observed_send_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.occurrence (
    account_id text NOT NULL,
    schedule text NOT NULL,
    nominal_on date NOT NULL,
    intended_local timestamp without time zone NOT NULL,
    zone text NOT NULL,
    case_of text NOT NULL,
    due_at timestamp with time zone,
    tzdb_version text NOT NULL,
    rule_version integer NOT NULL,
    intent_id bigint,
    written_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT case_is_known CHECK ((case_of = ANY (ARRAY['exact'::text, 'gap'::text, 'overlap'::text, 'absent'::text, 'unknown_zone'::text])))
);

COMMENT ON TABLE duebook.occurrence IS 'One nominal date of a schedule, as it was computed last.';

COMMENT ON COLUMN duebook.occurrence.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.occurrence.schedule IS 'Schedule.';

COMMENT ON COLUMN duebook.occurrence.nominal_on IS 'Date of the rule, before a business-day shift; stands in the operation key.';

COMMENT ON COLUMN duebook.occurrence.intended_local IS 'Local time that was meant.';

COMMENT ON COLUMN duebook.occurrence.zone IS 'Zone of that local time.';

COMMENT ON COLUMN duebook.occurrence.case_of IS 'exact; gap or overlap of the clock; absent: the month has no such day; unknown_zone: no instant yet.';

COMMENT ON COLUMN duebook.occurrence.due_at IS 'UTC instant; null while its zone is unknown.';

COMMENT ON COLUMN duebook.occurrence.tzdb_version IS 'Time zone data that computed it.';

COMMENT ON COLUMN duebook.occurrence.rule_version IS 'Version of the rule that computed it.';

COMMENT ON COLUMN duebook.occurrence.intent_id IS 'Intent that promises it.';

COMMENT ON COLUMN duebook.occurrence.written_at IS 'When it was written.';

CREATE TABLE duebook.old_sender (
    sender text NOT NULL,
    asks boolean NOT NULL,
    same_within interval NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    endpoint text,
    CONSTRAINT same_within_is_not_negative CHECK ((same_within >= '00:00:00'::interval)),
    CONSTRAINT sender_is_valid CHECK (((sender ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'::text) AND (sender <> 'duebook'::text)))
);

COMMENT ON TABLE duebook.old_sender IS 'Systems that tell the same customers while Duebook is rolled out.';

COMMENT ON COLUMN duebook.old_sender.sender IS 'Name, as in duebook.toml.';

COMMENT ON COLUMN duebook.old_sender.asks IS 'Whether it asks (ask_to_send) before it sends: then each key is taken by exactly one of the two.';

COMMENT ON COLUMN duebook.old_sender.same_within IS 'Sends of both within this count as the same time; beyond, as earlier or later.';

COMMENT ON COLUMN duebook.old_sender.updated_at IS 'When it was last changed.';

COMMENT ON COLUMN duebook.old_sender.endpoint IS 'Webhook endpoint whose events are its sends; null: it tells none that way.';

CREATE TABLE duebook.outcome (
    account_id text NOT NULL,
    operation_key text NOT NULL,
    intent_id bigint NOT NULL,
    kind text NOT NULL,
    payment_id text,
    result text NOT NULL,
    reason text,
    intended_local timestamp without time zone,
    zone text,
    due_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempt_no integer,
    provider_message_id text,
    CONSTRAINT expired_has_a_reason CHECK (((result <> 'expired'::text) OR (reason IS NOT NULL))),
    CONSTRAINT outcome_result_is_known CHECK ((result = ANY (ARRAY['sent'::text, 'done'::text, 'expired'::text])))
);

COMMENT ON TABLE duebook.outcome IS 'How an operation key ended: permanent, exactly one. Append-only.';

COMMENT ON COLUMN duebook.outcome.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.outcome.operation_key IS 'Operation key.';

COMMENT ON COLUMN duebook.outcome.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.outcome.kind IS 'Kind, as in intent.';

COMMENT ON COLUMN duebook.outcome.payment_id IS 'Payment, as in intent.';

COMMENT ON COLUMN duebook.outcome.result IS 'sent, done (an internal act) or expired.';

COMMENT ON COLUMN duebook.outcome.reason IS 'Why it expired: too_late, superseded, opted_out, suppressed, channel_disabled, settled_meanwhile, cancelled, exhausted, refused, dropped, skipped. Of what was sent: how its doubt ended, looked_up or resolved.';

COMMENT ON COLUMN duebook.outcome.intended_local IS 'Nominal local time, for promises on a calendar.';

COMMENT ON COLUMN duebook.outcome.zone IS 'Its zone.';

COMMENT ON COLUMN duebook.outcome.due_at IS 'UTC due time that counted.';

COMMENT ON COLUMN duebook.outcome.ended_at IS 'When it ended.';

COMMENT ON COLUMN duebook.outcome.attempt_no IS 'Attempt that ended it; null when none was needed.';

COMMENT ON COLUMN duebook.outcome.provider_message_id IS 'The provider''s id of the message, where sent.';

CREATE TABLE duebook.ownership_change (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    ownership_change_id bigint NOT NULL,
    ownership text NOT NULL,
    moved_by text NOT NULL,
    reason text NOT NULL,
    moved_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT moved_ownership_is_known CHECK ((ownership = ANY (ARRAY['shadow'::text, 'live'::text])))
);

COMMENT ON TABLE duebook.ownership_change IS 'A key that was moved by name between the old sender and Duebook; the newest counts. Append-only.';

COMMENT ON COLUMN duebook.ownership_change.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.ownership_change.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.ownership_change.ownership_change_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook.ownership_change.ownership IS 'live: Duebook''s from now on; shadow: the old sender''s.';

COMMENT ON COLUMN duebook.ownership_change.moved_by IS 'Who moved it.';

COMMENT ON COLUMN duebook.ownership_change.reason IS 'Why.';

COMMENT ON COLUMN duebook.ownership_change.moved_at IS 'When.';

ALTER TABLE duebook.ownership_change ALTER COLUMN ownership_change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.ownership_change_ownership_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.pause (
    scope text NOT NULL,
    name text NOT NULL,
    mode text NOT NULL,
    reason text NOT NULL,
    paused_by text NOT NULL,
    paused_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT all_has_no_name CHECK (((scope = 'all'::text) = (name = '*'::text))),
    CONSTRAINT pause_mode_is_known CHECK ((mode = ANY (ARRAY['hold'::text, 'drop'::text]))),
    CONSTRAINT scope_is_known CHECK ((scope = ANY (ARRAY['all'::text, 'kind'::text, 'channel'::text, 'account'::text])))
);

COMMENT ON TABLE duebook.pause IS 'What is paused now. hold: intents that come due are held and judged by their catch-up policy on resume. drop: they end expired, dropped. Holds expire all the same.';

COMMENT ON COLUMN duebook.pause.scope IS 'all, or one kind, channel or account.';

COMMENT ON COLUMN duebook.pause.name IS 'Which kind, channel or account; * for all.';

COMMENT ON COLUMN duebook.pause.mode IS 'hold or drop. Where two pauses match, drop wins.';

COMMENT ON COLUMN duebook.pause.reason IS 'Why.';

COMMENT ON COLUMN duebook.pause.paused_by IS 'Who.';

COMMENT ON COLUMN duebook.pause.paused_at IS 'Since when.';

CREATE TABLE duebook.pending_event (
    provider_account text NOT NULL,
    event_id text NOT NULL,
    endpoint text NOT NULL,
    queued_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    tries smallint DEFAULT 0 NOT NULL,
    not_before timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_error text
);

COMMENT ON TABLE duebook.pending_event IS 'Events whose payments were not read again yet.';

COMMENT ON COLUMN duebook.pending_event.provider_account IS 'Provider account.';

COMMENT ON COLUMN duebook.pending_event.event_id IS 'Event.';

COMMENT ON COLUMN duebook.pending_event.endpoint IS 'Endpoint that received it first.';

COMMENT ON COLUMN duebook.pending_event.queued_at IS 'When it was received.';

COMMENT ON COLUMN duebook.pending_event.tries IS 'Reads that were begun; one that never ended counts too.';

COMMENT ON COLUMN duebook.pending_event.not_before IS 'When it may be claimed: a claim moves it past its lease, a failure by its backoff.';

COMMENT ON COLUMN duebook.pending_event.last_error IS 'Why the last read failed. No body.';

CREATE TABLE duebook.pending_report (
    delivery_report_id bigint NOT NULL,
    give_up_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.pending_report IS 'Reports that suppress an address and came before the outcome of their message; tried again until then.';

COMMENT ON COLUMN duebook.pending_report.delivery_report_id IS 'Report.';

COMMENT ON COLUMN duebook.pending_report.give_up_at IS 'From then on the message is nobody''s.';

CREATE TABLE duebook.proposed (
    account_id text NOT NULL,
    intent_id bigint NOT NULL,
    proposed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.proposed IS 'Intents of an account in mode dry_run or shadow: proposals that no sweep can claim.';

COMMENT ON COLUMN duebook.proposed.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.proposed.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook.proposed.proposed_at IS 'When.';

CREATE TABLE duebook.provider_account (
    provider_account text NOT NULL,
    provider text NOT NULL,
    mode text DEFAULT 'dry_run'::text NOT NULL,
    notify_from timestamp with time zone,
    settle_within interval DEFAULT '3 days'::interval NOT NULL,
    zone text DEFAULT 'UTC'::text NOT NULL,
    look_back interval DEFAULT '00:10:00'::interval NOT NULL,
    cursor_position timestamp with time zone,
    last_full_as_of timestamp with time zone,
    last_full_run_id bigint,
    seen_xid xid8,
    newest_entry_at timestamp with time zone,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    books_until timestamp with time zone,
    judged_books_until timestamp with time zone,
    CONSTRAINT live_has_notify_from CHECK (((mode <> 'live'::text) OR (notify_from IS NOT NULL))),
    CONSTRAINT mode_is_known CHECK ((mode = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text]))),
    CONSTRAINT provider_account_is_valid CHECK ((provider_account ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'::text)),
    CONSTRAINT settle_within_is_not_negative CHECK ((settle_within >= '00:00:00'::interval))
);

COMMENT ON TABLE duebook.provider_account IS 'One account at one payment provider. Full runs of it are serial: a run locks this row.';

COMMENT ON COLUMN duebook.provider_account.provider_account IS 'Name, as in duebook.toml and on every row.';

COMMENT ON COLUMN duebook.provider_account.provider IS 'Which source reads it: stripe, adyen, csv.';

COMMENT ON COLUMN duebook.provider_account.mode IS 'dry_run: intents stay proposals; shadow: the same, compared with the old sender; live: intents are sent.';

COMMENT ON COLUMN duebook.provider_account.notify_from IS 'Evidence that occurred before this instant is baseline and tells nobody.';

COMMENT ON COLUMN duebook.provider_account.settle_within IS 'Promise of the provider: after expected_at plus this a payment without settlement is missing, before it is pending.';

COMMENT ON COLUMN duebook.provider_account.zone IS 'IANA zone in which the provider counts days.';

COMMENT ON COLUMN duebook.provider_account.look_back IS 'How far before the cursor an API is read again.';

COMMENT ON COLUMN duebook.provider_account.cursor_position IS 'For an API: everything created up to here was seen once.';

COMMENT ON COLUMN duebook.provider_account.last_full_as_of IS 'As-of of the newest committed full run; an older one is refused.';

COMMENT ON COLUMN duebook.provider_account.last_full_run_id IS 'That run.';

COMMENT ON COLUMN duebook.provider_account.seen_xid IS 'Imports from this transaction on were not surely seen by the last full run.';

COMMENT ON COLUMN duebook.provider_account.newest_entry_at IS 'When the newest entry that a full run applied occurred.';

COMMENT ON COLUMN duebook.provider_account.settings IS 'The rest of its block in duebook.toml: folder, pattern, columns, reference. No secret.';

COMMENT ON COLUMN duebook.provider_account.created_at IS 'When it was first applied.';

COMMENT ON COLUMN duebook.provider_account.updated_at IS 'When it was last changed.';

COMMENT ON COLUMN duebook.provider_account.books_until IS 'Until when the books that were imported are complete; an entry that occurred from then on is not missing in them yet. null: no cut-off is known.';

COMMENT ON COLUMN duebook.provider_account.judged_books_until IS 'That instant at the last full run: entries since then are looked up again.';

CREATE TABLE duebook.quarantined_row (
    quarantined_row_id bigint NOT NULL,
    source_kind text NOT NULL,
    provider_account text,
    run_id bigint,
    file_sha256 text,
    file_name text NOT NULL,
    line_no bigint NOT NULL,
    column_name text,
    value text,
    reason text NOT NULL,
    expected text NOT NULL,
    raw text,
    quarantined_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT source_kind_is_known CHECK ((source_kind = ANY (ARRAY['settlement'::text, 'ledger'::text, 'contacts'::text, 'sends'::text])))
);

COMMENT ON TABLE duebook.quarantined_row IS 'A row that could not be read, with where, what and why; the other rows of its file went on.';

COMMENT ON COLUMN duebook.quarantined_row.quarantined_row_id IS 'Identity.';

COMMENT ON COLUMN duebook.quarantined_row.source_kind IS 'Which import met it.';

COMMENT ON COLUMN duebook.quarantined_row.provider_account IS 'Provider account, for settlements.';

COMMENT ON COLUMN duebook.quarantined_row.run_id IS 'Run that met it, for settlements.';

COMMENT ON COLUMN duebook.quarantined_row.file_sha256 IS 'Checksum of the file; null for an API.';

COMMENT ON COLUMN duebook.quarantined_row.file_name IS 'File name without its folder, or api.';

COMMENT ON COLUMN duebook.quarantined_row.line_no IS 'Physical line in the file (the header is line 1 where it stands first), or position in the pull.';

COMMENT ON COLUMN duebook.quarantined_row.column_name IS 'Column at fault; null when the row as a whole is.';

COMMENT ON COLUMN duebook.quarantined_row.value IS 'Its value as read. May hold an amount: never logged.';

COMMENT ON COLUMN duebook.quarantined_row.reason IS 'What is wrong.';

COMMENT ON COLUMN duebook.quarantined_row.expected IS 'What was expected.';

COMMENT ON COLUMN duebook.quarantined_row.raw IS 'The whole row as read.';

COMMENT ON COLUMN duebook.quarantined_row.quarantined_at IS 'When.';

ALTER TABLE duebook.quarantined_row ALTER COLUMN quarantined_row_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.quarantined_row_quarantined_row_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.quiet_hours (
    quiet_hours_id bigint NOT NULL,
    region text,
    channel text,
    kind text,
    from_local time without time zone NOT NULL,
    until_local time without time zone NOT NULL,
    CONSTRAINT window_is_not_empty CHECK ((from_local <> until_local))
);

COMMENT ON TABLE duebook.quiet_hours IS 'Local times of the recipient at which nothing is sent, half-open [from, until), over midnight when from is later; null columns match all.';

COMMENT ON COLUMN duebook.quiet_hours.quiet_hours_id IS 'Identity.';

COMMENT ON COLUMN duebook.quiet_hours.region IS 'Region it holds for; null: every region.';

COMMENT ON COLUMN duebook.quiet_hours.channel IS 'Channel it holds for; null: every channel.';

COMMENT ON COLUMN duebook.quiet_hours.kind IS 'Kind it holds for; null: every kind.';

COMMENT ON COLUMN duebook.quiet_hours.from_local IS 'First local time that is quiet.';

COMMENT ON COLUMN duebook.quiet_hours.until_local IS 'First local time that is not quiet any more.';

ALTER TABLE duebook.quiet_hours ALTER COLUMN quiet_hours_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.quiet_hours_quiet_hours_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.quiet_hours_statement (
    only_row boolean DEFAULT true NOT NULL,
    are_none boolean NOT NULL,
    stated_by text NOT NULL,
    stated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT statement_has_one_row CHECK (only_row)
);

COMMENT ON TABLE duebook.quiet_hours_statement IS 'That quiet hours were stated, be it as none: no provider account goes live before.';

COMMENT ON COLUMN duebook.quiet_hours_statement.only_row IS 'Always true: holds the table to one row.';

COMMENT ON COLUMN duebook.quiet_hours_statement.are_none IS 'True: quiet_hours = "none" was stated.';

COMMENT ON COLUMN duebook.quiet_hours_statement.stated_by IS 'Who applied it.';

COMMENT ON COLUMN duebook.quiet_hours_statement.stated_at IS 'When.';

CREATE TABLE duebook.reconciliation_run (
    run_id bigint NOT NULL,
    provider_account text NOT NULL,
    scope text NOT NULL,
    mode text NOT NULL,
    as_of timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    committed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    triggered_by text NOT NULL,
    entries_new integer DEFAULT 0 NOT NULL,
    entries_changed integer DEFAULT 0 NOT NULL,
    entries_unchanged integer DEFAULT 0 NOT NULL,
    entries_stale integer DEFAULT 0 NOT NULL,
    quarantined integer DEFAULT 0 NOT NULL,
    matched integer DEFAULT 0 NOT NULL,
    pending integer DEFAULT 0 NOT NULL,
    discrepancies jsonb DEFAULT '{}'::jsonb NOT NULL,
    ledger_changes integer DEFAULT 0 NOT NULL,
    intents integer DEFAULT 0 NOT NULL,
    CONSTRAINT run_mode_is_known CHECK ((mode = ANY (ARRAY['dry_run'::text, 'shadow'::text, 'live'::text]))),
    CONSTRAINT scope_is_known CHECK ((scope = ANY (ARRAY['full'::text, 'payments'::text, 'window'::text])))
);

COMMENT ON TABLE duebook.reconciliation_run IS 'One committed comparison of one provider account, as of one instant, with a scope. Written by the transaction whose counts it holds.';

COMMENT ON COLUMN duebook.reconciliation_run.run_id IS 'Identity.';

COMMENT ON COLUMN duebook.reconciliation_run.provider_account IS 'Account that was compared.';

COMMENT ON COLUMN duebook.reconciliation_run.scope IS 'full judges absence; payments and window open and close only what is inside.';

COMMENT ON COLUMN duebook.reconciliation_run.mode IS 'Mode of the account when it ran.';

COMMENT ON COLUMN duebook.reconciliation_run.as_of IS 'Instant for which pending and missing were judged.';

COMMENT ON COLUMN duebook.reconciliation_run.started_at IS 'Database clock before the first byte was read.';

COMMENT ON COLUMN duebook.reconciliation_run.committed_at IS 'Database clock when it was applied.';

COMMENT ON COLUMN duebook.reconciliation_run.triggered_by IS 'Who or what asked: a DAG run id, an operator.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_new IS 'Entries seen for the first time.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_changed IS 'Entries with a new current version.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_unchanged IS 'Entries equal to their current version, rows of known files included.';

COMMENT ON COLUMN duebook.reconciliation_run.entries_stale IS 'Entries that an older source described; stored, not current.';

COMMENT ON COLUMN duebook.reconciliation_run.quarantined IS 'Rows kept in quarantine by this run.';

COMMENT ON COLUMN duebook.reconciliation_run.matched IS 'Booked payments whose captured amount is the expected one.';

COMMENT ON COLUMN duebook.reconciliation_run.pending IS 'Booked payments still inside the settlement promise.';

COMMENT ON COLUMN duebook.reconciliation_run.discrepancies IS 'Open discrepancies of the account after the run, by kind.';

COMMENT ON COLUMN duebook.reconciliation_run.ledger_changes IS 'Ledger changes written.';

COMMENT ON COLUMN duebook.reconciliation_run.intents IS 'Intents written.';

ALTER TABLE duebook.reconciliation_run ALTER COLUMN run_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.reconciliation_run_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.restore_accepted (
    restore_id bigint NOT NULL,
    accepted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    accepted_by text NOT NULL,
    batch_id bigint NOT NULL,
    witnessed jsonb NOT NULL,
    lost_batches integer NOT NULL,
    intents_were_lost boolean NOT NULL,
    lost_provider_accounts text[] NOT NULL,
    put_in_doubt integer NOT NULL
);

COMMENT ON TABLE duebook.restore_accepted IS 'Each time an operator accepted a database that was behind its witness. Append-only.';

COMMENT ON COLUMN duebook.restore_accepted.restore_id IS 'Identity.';

COMMENT ON COLUMN duebook.restore_accepted.accepted_at IS 'When. What was due by then may have been sent before the restore.';

COMMENT ON COLUMN duebook.restore_accepted.accepted_by IS 'Who.';

COMMENT ON COLUMN duebook.restore_accepted.batch_id IS 'Batch that stands for the lost claims: the attempts of what was put in doubt name it.';

COMMENT ON COLUMN duebook.restore_accepted.witnessed IS 'The objects of the witness that were lost; from then on they count as known.';

COMMENT ON COLUMN duebook.restore_accepted.lost_batches IS 'Batches, or flushes of them, that the witness knows and the database does not.';

COMMENT ON COLUMN duebook.restore_accepted.intents_were_lost IS 'Whether intents were sent that the database does not know: then what is promised again for a time before accepted_at goes in doubt.';

COMMENT ON COLUMN duebook.restore_accepted.lost_provider_accounts IS 'Provider accounts with runs that were lost: until their next full run, evidence from before accepted_at may have been told.';

COMMENT ON COLUMN duebook.restore_accepted.put_in_doubt IS 'Intents put in doubt at once.';

ALTER TABLE duebook.restore_accepted ALTER COLUMN restore_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.restore_accepted_restore_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.retired_reference (
    reference text NOT NULL,
    account_id text NOT NULL,
    payment_id text NOT NULL,
    retired_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    retired_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.retired_reference IS 'A reference that a payment no longer has since an import changed it: entries that carry it are looked at again. Append-only.';

COMMENT ON COLUMN duebook.retired_reference.reference IS 'The reference it had.';

COMMENT ON COLUMN duebook.retired_reference.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.retired_reference.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook.retired_reference.retired_xid IS 'Transaction of that import.';

COMMENT ON COLUMN duebook.retired_reference.retired_at IS 'When.';

CREATE TABLE duebook.schedule_past (
    account_id text NOT NULL,
    schedule text NOT NULL,
    rule_version integer NOT NULL,
    rule jsonb NOT NULL,
    ended_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE duebook.schedule_past IS 'A rule that was edited while some of its past dates were not written yet: they are still promised. Gone once they are written.';

COMMENT ON COLUMN duebook.schedule_past.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.schedule_past.schedule IS 'Schedule.';

COMMENT ON COLUMN duebook.schedule_past.rule_version IS 'Version of that rule.';

COMMENT ON COLUMN duebook.schedule_past.rule IS 'The row of the schedule as it was.';

COMMENT ON COLUMN duebook.schedule_past.ended_at IS 'When it was edited: instants from here on are the new rule''s.';

CREATE TABLE duebook.sender_key (
    account_id text NOT NULL,
    operation_key text NOT NULL,
    sender text NOT NULL,
    taken_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE duebook.sender_key IS 'Who took a key while an old sender asks: its unique key is where both meet, so exactly one has it. A row goes only when the key is moved by name.';

COMMENT ON COLUMN duebook.sender_key.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.sender_key.operation_key IS 'Operation key.';

COMMENT ON COLUMN duebook.sender_key.sender IS 'duebook, or the old sender.';

COMMENT ON COLUMN duebook.sender_key.taken_at IS 'When.';

CREATE TABLE duebook.settled_position (
    account_id text NOT NULL,
    payment_id text NOT NULL,
    provider_account text NOT NULL,
    currency character(3) NOT NULL,
    captured_minor bigint NOT NULL,
    refunded_minor bigint NOT NULL,
    charged_back_minor bigint NOT NULL,
    pending_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    entry_count integer NOT NULL,
    run_id bigint NOT NULL
);

COMMENT ON TABLE duebook.settled_position IS 'The settled side of a payment at one provider account, per currency. Written only by runs of that account; a payment''s settled side is their sum.';

COMMENT ON COLUMN duebook.settled_position.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.settled_position.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook.settled_position.provider_account IS 'Provider account whose evidence it sums.';

COMMENT ON COLUMN duebook.settled_position.currency IS 'Gross currency of captured, refunded, charged back; net currency of fee and net.';

COMMENT ON COLUMN duebook.settled_position.captured_minor IS 'Captured after partial-capture reversals, settled entries only.';

COMMENT ON COLUMN duebook.settled_position.refunded_minor IS 'Refunded, positive.';

COMMENT ON COLUMN duebook.settled_position.charged_back_minor IS 'Charged back less reversals, positive.';

COMMENT ON COLUMN duebook.settled_position.pending_minor IS 'Announced, not yet settled, signed.';

COMMENT ON COLUMN duebook.settled_position.fee_minor IS 'Fees of entries whose net currency this is.';

COMMENT ON COLUMN duebook.settled_position.net_minor IS 'Net of entries whose net currency this is.';

COMMENT ON COLUMN duebook.settled_position.entry_count IS 'Entries that it sums.';

COMMENT ON COLUMN duebook.settled_position.run_id IS 'Run that last changed it.';

CREATE TABLE duebook.settlement_batch (
    provider_account text NOT NULL,
    batch_ref text NOT NULL,
    currency character(3) NOT NULL,
    sum_minor bigint NOT NULL,
    payout_minor bigint NOT NULL,
    difference_minor bigint NOT NULL,
    entry_count integer NOT NULL,
    status text NOT NULL,
    is_itemisable boolean DEFAULT true NOT NULL,
    is_complete boolean DEFAULT true NOT NULL,
    run_id bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT batch_status_is_known CHECK ((status = ANY (ARRAY['closed'::text, 'carried'::text, 'open'::text, 'not_closed'::text, 'not_itemisable'::text]))),
    CONSTRAINT difference_is_the_sum CHECK ((difference_minor = (sum_minor + payout_minor)))
);

COMMENT ON TABLE duebook.settlement_batch IS 'What a provider pays out together, per net currency; closes to zero, or says by how much it does not.';

COMMENT ON COLUMN duebook.settlement_batch.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_batch.batch_ref IS 'The provider''s name of the batch or payout.';

COMMENT ON COLUMN duebook.settlement_batch.currency IS 'Net currency.';

COMMENT ON COLUMN duebook.settlement_batch.sum_minor IS 'Sum of net over its entries without the payout.';

COMMENT ON COLUMN duebook.settlement_batch.payout_minor IS 'Net of its payout rows (negative when paid out).';

COMMENT ON COLUMN duebook.settlement_batch.difference_minor IS 'Their sum: 0 when the batch closes.';

COMMENT ON COLUMN duebook.settlement_batch.entry_count IS 'Entries in it, the payout included.';

COMMENT ON COLUMN duebook.settlement_batch.status IS 'closed, carried (no payout, 0), open (not yet paid out), not_closed, not_itemisable.';

COMMENT ON COLUMN duebook.settlement_batch.is_itemisable IS 'False for a manual payout, whose entries the provider does not name.';

COMMENT ON COLUMN duebook.settlement_batch.is_complete IS 'False while the provider may still name further entries of it.';

COMMENT ON COLUMN duebook.settlement_batch.run_id IS 'Run that last changed it.';

COMMENT ON COLUMN duebook.settlement_batch.updated_at IS 'When.';

CREATE TABLE duebook.settlement_entry (
    provider_account text NOT NULL,
    entry_id text NOT NULL,
    version integer NOT NULL,
    entry_type text NOT NULL,
    provider_type text NOT NULL,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    currency character(3) NOT NULL,
    net_currency character(3) NOT NULL,
    entry_status text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone,
    source_order bigint NOT NULL,
    source text NOT NULL,
    file_id bigint,
    line_no bigint NOT NULL,
    source_hash bigint,
    account_id text,
    payment_id text,
    first_run_id bigint NOT NULL,
    run_id bigint NOT NULL,
    CONSTRAINT claim_is_whole CHECK (((account_id IS NULL) = (payment_id IS NULL))),
    CONSTRAINT entry_status_is_known CHECK ((entry_status = ANY (ARRAY['pending'::text, 'settled'::text, 'withdrawn'::text]))),
    CONSTRAINT entry_type_is_known CHECK ((entry_type = ANY (ARRAY['charge'::text, 'refund'::text, 'chargeback'::text, 'chargeback_reversal'::text, 'fee'::text, 'payout'::text, 'transfer'::text, 'reserve'::text, 'conversion'::text, 'adjustment'::text, 'other'::text]))),
    CONSTRAINT version_is_positive CHECK ((version > 0))
);

COMMENT ON TABLE duebook.settlement_entry IS 'One money row of a provider: its identity and current version. Old versions and bodies are in settlement_entry_version.';

COMMENT ON COLUMN duebook.settlement_entry.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_entry.entry_id IS 'Stable identity at the provider; made from its keys where the provider gives none.';

COMMENT ON COLUMN duebook.settlement_entry.version IS 'Number of the current version, from 1.';

COMMENT ON COLUMN duebook.settlement_entry.entry_type IS 'What it is, in Duebook''s words.';

COMMENT ON COLUMN duebook.settlement_entry.provider_type IS 'What it is, as the provider wrote it.';

COMMENT ON COLUMN duebook.settlement_entry.batch_ref IS 'Settlement batch or payout it belongs to, once known.';

COMMENT ON COLUMN duebook.settlement_entry.payment_ref IS 'Reference that is matched with ledger_payment.reference.';

COMMENT ON COLUMN duebook.settlement_entry.provider_payment_ref IS 'The provider''s own id of the payment.';

COMMENT ON COLUMN duebook.settlement_entry.gross_minor IS 'Gross, signed, minor units of currency.';

COMMENT ON COLUMN duebook.settlement_entry.fee_minor IS 'Fee, positive when a cost, minor units of net_currency.';

COMMENT ON COLUMN duebook.settlement_entry.net_minor IS 'Net, signed, minor units of net_currency.';

COMMENT ON COLUMN duebook.settlement_entry.currency IS 'Gross currency.';

COMMENT ON COLUMN duebook.settlement_entry.net_currency IS 'Currency of fee and net.';

COMMENT ON COLUMN duebook.settlement_entry.entry_status IS 'pending: announced, not yet available; settled: counts; withdrawn: only a file that was withdrawn said it.';

COMMENT ON COLUMN duebook.settlement_entry.occurred_at IS 'When it happened at the provider.';

COMMENT ON COLUMN duebook.settlement_entry.available_at IS 'When the money is or was available.';

COMMENT ON COLUMN duebook.settlement_entry.source_order IS 'Order of the source of the current version; an older source does not replace it.';

COMMENT ON COLUMN duebook.settlement_entry.source IS 'File name, or api.';

COMMENT ON COLUMN duebook.settlement_entry.file_id IS 'File of the current version, null for an API.';

COMMENT ON COLUMN duebook.settlement_entry.line_no IS 'Line in that file, or position in the pull.';

COMMENT ON COLUMN duebook.settlement_entry.source_hash IS 'Fingerprint of the row''s text as it was read: the same text again is unchanged without being read again. Null for an API.';

COMMENT ON COLUMN duebook.settlement_entry.account_id IS 'Customer account whose payment claims it; null: in suspense or not of a payment.';

COMMENT ON COLUMN duebook.settlement_entry.payment_id IS 'Payment that claims it; null: in suspense or not of a payment.';

COMMENT ON COLUMN duebook.settlement_entry.first_run_id IS 'Run that saw it first.';

COMMENT ON COLUMN duebook.settlement_entry.run_id IS 'Run that wrote the current version.';

CREATE TABLE duebook.settlement_entry_version (
    provider_account text NOT NULL,
    entry_id text NOT NULL,
    version integer NOT NULL,
    is_current_when_stored boolean NOT NULL,
    entry_type text NOT NULL,
    provider_type text NOT NULL,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint NOT NULL,
    fee_minor bigint NOT NULL,
    net_minor bigint NOT NULL,
    currency character(3) NOT NULL,
    net_currency character(3) NOT NULL,
    entry_status text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone,
    source_order bigint NOT NULL,
    source text NOT NULL,
    file_id bigint,
    line_no bigint NOT NULL,
    run_id bigint NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    body jsonb
)
PARTITION BY RANGE (stored_at);

COMMENT ON TABLE duebook.settlement_entry_version IS 'Every version of every entry, as it was told, with its body. Append-only, partitioned by the time of storing.';

COMMENT ON COLUMN duebook.settlement_entry_version.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_entry_version.entry_id IS 'Entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.version IS 'Number of the version, from 1, in the order of storing.';

COMMENT ON COLUMN duebook.settlement_entry_version.is_current_when_stored IS 'False when an older source told it after a newer one.';

COMMENT ON COLUMN duebook.settlement_entry_version.entry_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.provider_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.batch_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.provider_payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.gross_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.fee_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.net_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.net_currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.entry_status IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.occurred_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.available_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.source_order IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.source IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.file_id IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.line_no IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version.run_id IS 'Run that stored it.';

COMMENT ON COLUMN duebook.settlement_entry_version.stored_at IS 'When it was stored.';

COMMENT ON COLUMN duebook.settlement_entry_version.body IS 'The row as the provider gave it, reduced to the fields that are no personal data.';

CREATE TABLE duebook.settlement_entry_version_default (
    provider_account text CONSTRAINT settlement_entry_version_provider_account_not_null NOT NULL,
    entry_id text CONSTRAINT settlement_entry_version_entry_id_not_null NOT NULL,
    version integer CONSTRAINT settlement_entry_version_version_not_null NOT NULL,
    is_current_when_stored boolean CONSTRAINT settlement_entry_version_is_current_when_stored_not_null NOT NULL,
    entry_type text CONSTRAINT settlement_entry_version_entry_type_not_null NOT NULL,
    provider_type text CONSTRAINT settlement_entry_version_provider_type_not_null NOT NULL,
    batch_ref text,
    payment_ref text,
    provider_payment_ref text,
    gross_minor bigint CONSTRAINT settlement_entry_version_gross_minor_not_null NOT NULL,
    fee_minor bigint CONSTRAINT settlement_entry_version_fee_minor_not_null NOT NULL,
    net_minor bigint CONSTRAINT settlement_entry_version_net_minor_not_null NOT NULL,
    currency character(3) CONSTRAINT settlement_entry_version_currency_not_null NOT NULL,
    net_currency character(3) CONSTRAINT settlement_entry_version_net_currency_not_null NOT NULL,
    entry_status text CONSTRAINT settlement_entry_version_entry_status_not_null NOT NULL,
    occurred_at timestamp with time zone CONSTRAINT settlement_entry_version_occurred_at_not_null NOT NULL,
    available_at timestamp with time zone,
    source_order bigint CONSTRAINT settlement_entry_version_source_order_not_null NOT NULL,
    source text CONSTRAINT settlement_entry_version_source_not_null NOT NULL,
    file_id bigint,
    line_no bigint CONSTRAINT settlement_entry_version_line_no_not_null NOT NULL,
    run_id bigint CONSTRAINT settlement_entry_version_run_id_not_null NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT settlement_entry_version_stored_at_not_null NOT NULL,
    body jsonb
);

COMMENT ON TABLE duebook.settlement_entry_version_default IS 'Versions for whose time no partition of its own was made.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.entry_id IS 'Entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.version IS 'Number of the version, from 1, in the order of storing.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.is_current_when_stored IS 'False when an older source told it after a newer one.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.entry_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.provider_type IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.batch_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.provider_payment_ref IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.gross_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.fee_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.net_minor IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.net_currency IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.entry_status IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.occurred_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.available_at IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.source_order IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.source IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.file_id IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.line_no IS 'As in settlement_entry.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.run_id IS 'Run that stored it.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.stored_at IS 'When it was stored.';

COMMENT ON COLUMN duebook.settlement_entry_version_default.body IS 'The row as the provider gave it, reduced to the fields that are no personal data.';

CREATE TABLE duebook.settlement_file (
    file_id bigint NOT NULL,
    provider_account text NOT NULL,
    sha256 text NOT NULL,
    name text NOT NULL,
    size_bytes bigint NOT NULL,
    row_count bigint NOT NULL,
    quarantined_count bigint NOT NULL,
    source_order bigint NOT NULL,
    run_id bigint NOT NULL,
    received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    withdrawn_at timestamp with time zone,
    withdrawn_by text,
    withdrawn_because text,
    withdrawn_run_id bigint,
    CONSTRAINT sha256_is_hex CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text))
);

COMMENT ON TABLE duebook.settlement_file IS 'A settlement file that was applied, known by its checksum and taken once; one that was withdrawn may be taken again.';

COMMENT ON COLUMN duebook.settlement_file.file_id IS 'Identity.';

COMMENT ON COLUMN duebook.settlement_file.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook.settlement_file.sha256 IS 'Checksum of its bytes, hex.';

COMMENT ON COLUMN duebook.settlement_file.name IS 'File name without its folder.';

COMMENT ON COLUMN duebook.settlement_file.size_bytes IS 'Its size.';

COMMENT ON COLUMN duebook.settlement_file.row_count IS 'Data rows read, quarantined ones included.';

COMMENT ON COLUMN duebook.settlement_file.quarantined_count IS 'Rows of it kept in quarantine.';

COMMENT ON COLUMN duebook.settlement_file.source_order IS 'Order of what it says among files of the account.';

COMMENT ON COLUMN duebook.settlement_file.run_id IS 'Run that took it.';

COMMENT ON COLUMN duebook.settlement_file.received_at IS 'When.';

COMMENT ON COLUMN duebook.settlement_file.withdrawn_at IS 'When it was withdrawn; null: it counts.';

COMMENT ON COLUMN duebook.settlement_file.withdrawn_by IS 'Who withdrew it.';

COMMENT ON COLUMN duebook.settlement_file.withdrawn_because IS 'Why.';

COMMENT ON COLUMN duebook.settlement_file.withdrawn_run_id IS 'Run that took it back.';

CREATE TABLE duebook.settlement_file_check (
    file_id bigint NOT NULL,
    section text NOT NULL,
    currency text DEFAULT ''::text NOT NULL,
    check_name text NOT NULL,
    provider_account text NOT NULL,
    stated_minor bigint,
    computed_minor bigint,
    is_ok boolean NOT NULL,
    checked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT check_name_is_known CHECK ((check_name = ANY (ARRAY['gross_credit'::text, 'gross_debit'::text, 'fee_credit'::text, 'fee_debit'::text, 'section_footer'::text, 'totals'::text])))
);

COMMENT ON TABLE duebook.settlement_file_check IS 'What a settlement file states about its own rows, held against them. A statement that does not hold flags the file and refuses nothing. Append-only.';

COMMENT ON COLUMN duebook.settlement_file_check.file_id IS 'File.';

COMMENT ON COLUMN duebook.settlement_file_check.section IS 'Part of the file that the statement is about: section 1, or report.';

COMMENT ON COLUMN duebook.settlement_file_check.currency IS 'Currency of the amounts; empty where the statement names none.';

COMMENT ON COLUMN duebook.settlement_file_check.check_name IS 'gross_credit, gross_debit, fee_credit, fee_debit: a total; section_footer: the totals are missing, so the file was cut; totals: they are no numbers.';

COMMENT ON COLUMN duebook.settlement_file_check.provider_account IS 'Account the file belongs to.';

COMMENT ON COLUMN duebook.settlement_file_check.stated_minor IS 'What the file states, minor units; null: nothing.';

COMMENT ON COLUMN duebook.settlement_file_check.computed_minor IS 'What its rows come to, minor units.';

COMMENT ON COLUMN duebook.settlement_file_check.is_ok IS 'Whether the rows come to what is stated.';

COMMENT ON COLUMN duebook.settlement_file_check.checked_at IS 'When.';

ALTER TABLE duebook.settlement_file ALTER COLUMN file_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME duebook.settlement_file_file_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE duebook.severity_rule (
    currency text NOT NULL,
    high_minor bigint,
    critical_minor bigint,
    high_after interval,
    critical_after interval,
    CONSTRAINT currency_is_a_code CHECK (((currency = '*'::text) OR (currency ~ '^[A-Z]{3}$'::text)))
);

COMMENT ON TABLE duebook.severity_rule IS 'From which difference and from which age on a discrepancy is high or critical, by currency; * has the ages. Written by apply.';

COMMENT ON COLUMN duebook.severity_rule.currency IS 'ISO 4217 code, or * for the ages.';

COMMENT ON COLUMN duebook.severity_rule.high_minor IS 'Difference from which it is high, minor units; null: never.';

COMMENT ON COLUMN duebook.severity_rule.critical_minor IS 'Difference from which it is critical, minor units; null: never.';

COMMENT ON COLUMN duebook.severity_rule.high_after IS 'Age from which it is high; null: never.';

COMMENT ON COLUMN duebook.severity_rule.critical_after IS 'Age from which it is critical; null: never.';

CREATE TABLE duebook.suppression (
    account_id text NOT NULL,
    channel text NOT NULL,
    reason text NOT NULL,
    suppressed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    source text DEFAULT 'operator'::text NOT NULL,
    CONSTRAINT suppression_source_is_known CHECK ((source = ANY (ARRAY['provider'::text, 'recipient'::text, 'operator'::text])))
);

COMMENT ON TABLE duebook.suppression IS 'Accounts that a channel must not reach any more (bounce, complaint, refused address).';

COMMENT ON COLUMN duebook.suppression.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook.suppression.channel IS 'Channel that is suppressed.';

COMMENT ON COLUMN duebook.suppression.reason IS 'Code of the refusal.';

COMMENT ON COLUMN duebook.suppression.suppressed_at IS 'Since when.';

COMMENT ON COLUMN duebook.suppression.source IS 'Who said so: provider (an answer or a report), recipient (a complaint), operator.';

CREATE TABLE duebook.webhook_body (
    endpoint text NOT NULL,
    event_id text NOT NULL,
    body_sha256 bytea NOT NULL,
    received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    headers jsonb NOT NULL,
    body bytea NOT NULL
);

COMMENT ON TABLE duebook.webhook_body IS 'Raw bodies, apart from their receipts so that they can go by age; a second body under one event id is kept and alerted.';

COMMENT ON COLUMN duebook.webhook_body.endpoint IS 'Endpoint.';

COMMENT ON COLUMN duebook.webhook_body.event_id IS 'Event.';

COMMENT ON COLUMN duebook.webhook_body.body_sha256 IS 'Digest of the raw body.';

COMMENT ON COLUMN duebook.webhook_body.received_at IS 'When it came.';

COMMENT ON COLUMN duebook.webhook_body.headers IS 'Signed headers and content type; no cookie, no authorization.';

COMMENT ON COLUMN duebook.webhook_body.body IS 'The bytes that were signed.';

CREATE TABLE duebook.webhook_receipt (
    endpoint text NOT NULL,
    event_id text NOT NULL,
    provider_account text NOT NULL,
    scheme text NOT NULL,
    received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    body_sha256 bytea NOT NULL,
    CONSTRAINT digest_is_sha256 CHECK ((octet_length(body_sha256) = 32)),
    CONSTRAINT event_id_is_valid CHECK (((char_length(event_id) >= 1) AND (char_length(event_id) <= 255)))
);

COMMENT ON TABLE duebook.webhook_receipt IS 'One event of one endpoint, however often it was delivered. Kept for ever: the only guard against a replay where no time is signed.';

COMMENT ON COLUMN duebook.webhook_receipt.endpoint IS 'Endpoint, as in duebook.toml and in the path.';

COMMENT ON COLUMN duebook.webhook_receipt.event_id IS 'The provider''s id of the event.';

COMMENT ON COLUMN duebook.webhook_receipt.provider_account IS 'Provider account of the endpoint.';

COMMENT ON COLUMN duebook.webhook_receipt.scheme IS 'How it was signed: stripe, standard.';

COMMENT ON COLUMN duebook.webhook_receipt.received_at IS 'When it was stored first.';

COMMENT ON COLUMN duebook.webhook_receipt.body_sha256 IS 'Digest of the raw body.';

CREATE VIEW duebook_reports.catch_up_decisions AS
 SELECT e.account_id,
    i.payment_id,
    e.subject AS operation_key,
    i.kind,
    e.happened_at AS decided_at,
    (e.detail ->> 'verdict'::text) AS verdict,
    ((e.detail ->> 'due_at'::text))::timestamp with time zone AS due_at,
    ((e.detail ->> 'late_s'::text))::bigint AS late_s,
    ((e.detail ->> 'slot_at'::text))::timestamp with time zone AS slot_at,
    ((e.detail ->> 'newer_due'::text))::integer AS newer_due,
    (e.detail ->> 'policy_of'::text) AS policy_of,
    (e.detail ->> 'catch_up'::text) AS catch_up,
    ((e.detail ->> 'window_s'::text))::bigint AS window_s,
    ((e.detail ->> 'max_occurrences'::text))::integer AS max_occurrences,
    ((e.detail ->> 'spread_per_minute'::text))::integer AS spread_per_minute
   FROM (duebook.audit_event e
     JOIN duebook.intent i ON (((e.account_id = i.account_id) AND (e.subject = i.operation_key))))
  WHERE (e.action = 'catch_up'::text);

COMMENT ON VIEW duebook_reports.catch_up_decisions IS 'What the catch-up policy decided about each missed intent, with the policy as it was then. One row each time that one was judged.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.payment_id IS 'Payment it is about, if one.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.operation_key IS 'The idempotency key.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.kind IS 'Kind, such as payment_settled.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.decided_at IS 'When.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.verdict IS 'send, superseded, skipped or too_late.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.due_at IS 'UTC instant at which it had been due.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.late_s IS 'How late it was found, in seconds.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.slot_at IS 'UTC instant from which the pace of catching up lets it go; null unless it is sent.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.newer_due IS 'Newer ones of its subject that were due, counted as far as its policy asks.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.policy_of IS 'Whose policy it was: kind or schedule.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.catch_up IS 'all, latest or skip.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.window_s IS 'How old a missed one might be and still be sent, in seconds.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.max_occurrences IS 'With all: how many missed ones of one subject were sent at most.';

COMMENT ON COLUMN duebook_reports.catch_up_decisions.spread_per_minute IS 'Rate while catching up.';

CREATE VIEW duebook_reports.delivery_health AS
 SELECT ((r.finished_at AT TIME ZONE 'UTC'::text))::date AS day_utc,
    i.channel,
    i.kind,
    r.result,
    r.reason,
    r.provider_code,
    count(*) AS results,
    count(DISTINCT i.intent_id) AS intents,
    count(*) FILTER (WHERE r.is_late) AS late,
    max(r.attempt_no) AS most_claims,
    percentile_disc((0.5)::double precision) WITHIN GROUP (ORDER BY (r.finished_at - a.due_at)) AS median_delay,
    percentile_disc((0.99)::double precision) WITHIN GROUP (ORDER BY (r.finished_at - a.due_at)) AS p99_delay,
    max(r.finished_at) AS last_at
   FROM ((duebook.attempt_result r
     JOIN duebook.intent i ON (((r.account_id = i.account_id) AND (r.intent_id = i.intent_id))))
     LEFT JOIN duebook.attempt a ON (((r.account_id = a.account_id) AND (r.intent_id = a.intent_id) AND (r.attempt_no = a.attempt_no))))
  WHERE ((r.result <> 'skipped'::text) AND (i.channel <> 'internal'::text))
  GROUP BY (((r.finished_at AT TIME ZONE 'UTC'::text))::date), i.channel, i.kind, r.result, r.reason, r.provider_code;

COMMENT ON VIEW duebook_reports.delivery_health IS 'How deliveries go: tries by UTC day, channel, kind and how they went.';

COMMENT ON COLUMN duebook_reports.delivery_health.day_utc IS 'UTC day on which the answer was there.';

COMMENT ON COLUMN duebook_reports.delivery_health.channel IS 'Channel.';

COMMENT ON COLUMN duebook_reports.delivery_health.kind IS 'Kind of notice.';

COMMENT ON COLUMN duebook_reports.delivery_health.result IS 'How the tries went: sent, deferred, failed, unknown, held, expired.';

COMMENT ON COLUMN duebook_reports.delivery_health.reason IS 'Why, in the gate''s words or the channel''s.';

COMMENT ON COLUMN duebook_reports.delivery_health.provider_code IS 'Code of the provider''s answer.';

COMMENT ON COLUMN duebook_reports.delivery_health.results IS 'How many tries went so.';

COMMENT ON COLUMN duebook_reports.delivery_health.intents IS 'Of how many notices.';

COMMENT ON COLUMN duebook_reports.delivery_health.late IS 'How many were told after the sender''s claim had been taken from it.';

COMMENT ON COLUMN duebook_reports.delivery_health.most_claims IS 'Most claims that one of them has had.';

COMMENT ON COLUMN duebook_reports.delivery_health.median_delay IS 'Median of answer less due time.';

COMMENT ON COLUMN duebook_reports.delivery_health.p99_delay IS '99th percentile of answer less due time.';

COMMENT ON COLUMN duebook_reports.delivery_health.last_at IS 'When the last of them was answered.';

CREATE VIEW duebook_reports.discrepancies AS
 SELECT d.provider_account,
    d.account_id,
    d.payment_id,
    d.batch_ref,
    d.entry_id,
    d.kind,
    d.subject,
    d.provider_minor,
    d.ledger_minor,
    d.currency,
    duebook.major_amount(d.provider_minor, d.currency, a.provider) AS provider_amount,
    duebook.major_amount(d.ledger_minor, d.currency, a.provider) AS ledger_amount,
    d.detail,
    d.status,
        CASE
            WHEN ((d.closed_at IS NOT NULL) OR (d.status <> ALL (ARRAY['open'::text, 'acknowledged'::text]))) THEN d.severity
            ELSE (ARRAY['low'::text, 'normal'::text, 'high'::text, 'critical'::text])[s.rank]
        END AS severity,
    d.first_seen_at,
        CASE
            WHEN (d.closed_at IS NULL) THEN GREATEST(d.last_seen_at, a.last_full_as_of)
            ELSE d.last_seen_at
        END AS last_seen_at,
    d.closed_at,
    ((d.first_seen_at AT TIME ZONE 'UTC'::text))::date AS first_seen_on_utc,
    ((d.first_seen_at AT TIME ZONE a.zone))::date AS first_seen_on_provider,
    d.times_opened,
    d.opened_run_id,
    d.last_run_id,
    x.difference_minor,
    duebook.major_amount(x.difference_minor, d.currency, a.provider) AS difference,
    x.age_days,
    d.assignee,
    w.actor AS decided_by,
    w.reason AS decided_because,
    w.at AS decided_at
   FROM ((((duebook.discrepancy d
     LEFT JOIN duebook.provider_account a ON ((d.provider_account = a.provider_account)))
     CROSS JOIN LATERAL ( SELECT (COALESCE(d.provider_minor, (0)::bigint) - COALESCE(d.ledger_minor, (0)::bigint)) AS difference_minor,
            (GREATEST(EXTRACT(day FROM (COALESCE(d.closed_at, a.last_full_as_of, d.last_seen_at) - d.first_seen_at)), (0)::numeric))::integer AS age_days) x)
     CROSS JOIN LATERAL ( SELECT max(GREATEST(array_position(ARRAY['low'::text, 'normal'::text, 'high'::text, 'critical'::text], d.severity),
                CASE
                    WHEN (abs(x.difference_minor) >= r.critical_minor) THEN 4
                    WHEN (abs(x.difference_minor) >= r.high_minor) THEN 3
                    WHEN (make_interval(days => x.age_days) >= r.critical_after) THEN 4
                    WHEN (make_interval(days => x.age_days) >= r.high_after) THEN 3
                    ELSE 1
                END)) AS rank
           FROM ( SELECT v.high_minor,
                    v.critical_minor,
                    v.high_after,
                    v.critical_after
                   FROM duebook.severity_rule v
                  WHERE (v.currency = ANY (ARRAY['*'::text, (d.currency)::text]))
                UNION ALL
                 VALUES (NULL::bigint,NULL::bigint,NULL::interval,NULL::interval)) r) s)
     LEFT JOIN LATERAL ( SELECT e.actor,
            e.reason,
            e.at
           FROM duebook.discrepancy_event e
          WHERE ((e.provider_account = d.provider_account) AND (e.kind = d.kind) AND (e.subject = d.subject) AND (e.actor <> 'reconcile'::text))
          ORDER BY e.event_id DESC
         LIMIT 1) w ON (true));

COMMENT ON VIEW duebook_reports.discrepancies IS 'Differences between the sides, open and closed; closed_at is null while a difference stands.';

COMMENT ON COLUMN duebook_reports.discrepancies.provider_account IS 'Account whose run found it.';

COMMENT ON COLUMN duebook_reports.discrepancies.account_id IS 'Customer account, where a payment is concerned.';

COMMENT ON COLUMN duebook_reports.discrepancies.payment_id IS 'Payment, where one is concerned.';

COMMENT ON COLUMN duebook_reports.discrepancies.batch_ref IS 'Batch, where one is concerned.';

COMMENT ON COLUMN duebook_reports.discrepancies.entry_id IS 'Entry, where one is concerned.';

COMMENT ON COLUMN duebook_reports.discrepancies.kind IS 'missing_in_ledger, missing_at_provider, amount_mismatch, currency_mismatch, status_mismatch, duplicate_reference, unexplained_remainder.';

COMMENT ON COLUMN duebook_reports.discrepancies.subject IS 'What it is about: payment:…, entry:… or batch:….';

COMMENT ON COLUMN duebook_reports.discrepancies.provider_minor IS 'What the provider says, minor units.';

COMMENT ON COLUMN duebook_reports.discrepancies.ledger_minor IS 'What the books say, minor units.';

COMMENT ON COLUMN duebook_reports.discrepancies.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook_reports.discrepancies.provider_amount IS 'What the provider says, major units, exact.';

COMMENT ON COLUMN duebook_reports.discrepancies.ledger_amount IS 'What the books say, major units, exact.';

COMMENT ON COLUMN duebook_reports.discrepancies.detail IS 'What a reader needs to act: statuses, the other currency, how many payments.';

COMMENT ON COLUMN duebook_reports.discrepancies.status IS 'open, acknowledged, resolved, ignored, written_off, or closed once it is gone.';

COMMENT ON COLUMN duebook_reports.discrepancies.severity IS 'low, normal, high, critical: the worst of what its kind, its difference and its age say ([severity] in duebook.toml).';

COMMENT ON COLUMN duebook_reports.discrepancies.first_seen_at IS 'As-of of the run that opened it first.';

COMMENT ON COLUMN duebook_reports.discrepancies.last_seen_at IS 'As-of of the newest run that still saw it.';

COMMENT ON COLUMN duebook_reports.discrepancies.closed_at IS 'When a run no longer saw it; null while it stands.';

COMMENT ON COLUMN duebook_reports.discrepancies.first_seen_on_utc IS 'Day of first_seen_at in UTC.';

COMMENT ON COLUMN duebook_reports.discrepancies.first_seen_on_provider IS 'Day of first_seen_at in the provider''s zone.';

COMMENT ON COLUMN duebook_reports.discrepancies.times_opened IS 'How often it was opened.';

COMMENT ON COLUMN duebook_reports.discrepancies.opened_run_id IS 'Run that opened it, or reopened it.';

COMMENT ON COLUMN duebook_reports.discrepancies.last_run_id IS 'Newest run that wrote it.';

COMMENT ON COLUMN duebook_reports.discrepancies.difference_minor IS 'What the provider says less what the books say, minor units; one that is missing counts as 0.';

COMMENT ON COLUMN duebook_reports.discrepancies.difference IS 'The same, major units, exact.';

COMMENT ON COLUMN duebook_reports.discrepancies.age_days IS 'Whole days from when it was seen first to the last full run, or to when it closed.';

COMMENT ON COLUMN duebook_reports.discrepancies.assignee IS 'Who works on it; null: nobody yet.';

COMMENT ON COLUMN duebook_reports.discrepancies.decided_by IS 'Who did something with it last; null: nobody.';

COMMENT ON COLUMN duebook_reports.discrepancies.decided_because IS 'Why, as that person wrote it.';

COMMENT ON COLUMN duebook_reports.discrepancies.decided_at IS 'When.';

CREATE VIEW duebook_reports.discrepancy_ageing AS
 SELECT d.provider_account,
    d.kind,
    d.currency,
    b.age_bucket,
    b.from_days,
    count(*) AS discrepancies,
    count(*) FILTER (WHERE (d.assignee IS NULL)) AS unassigned,
    count(*) FILTER (WHERE (d.severity = 'critical'::text)) AS critical,
    (sum(abs(d.difference_minor)))::bigint AS difference_minor,
    sum(abs(d.difference)) AS difference,
    min(d.first_seen_at) AS oldest_first_seen_at
   FROM (duebook_reports.discrepancies d
     JOIN ( VALUES ('0-1'::text,0,1), ('2-5'::text,2,5), ('6-10'::text,6,10), ('11-30'::text,11,30), ('over 30'::text,31,NULL::integer)) b(age_bucket, from_days, until_days) ON (((d.age_days >= b.from_days) AND ((b.until_days IS NULL) OR (d.age_days <= b.until_days)))))
  WHERE ((d.closed_at IS NULL) AND (d.status = ANY (ARRAY['open'::text, 'acknowledged'::text])))
  GROUP BY d.provider_account, d.kind, d.currency, b.age_bucket, b.from_days;

COMMENT ON VIEW duebook_reports.discrepancy_ageing IS 'How long differences that still want somebody have stood, by account, kind, currency and age in days.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.provider_account IS 'Account whose run found them.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.kind IS 'What differs.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.currency IS 'Currency of the amounts.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.age_bucket IS 'Days since they were seen first: 0-1, 2-5, 6-10, 11-30, over 30.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.from_days IS 'First day of the bucket: what to sort by.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.discrepancies IS 'How many.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.unassigned IS 'How many of them nobody works on.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.critical IS 'How many of them are critical.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.difference_minor IS 'Sum of the differences, each without its sign, minor units.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.difference IS 'The same, major units, exact.';

COMMENT ON COLUMN duebook_reports.discrepancy_ageing.oldest_first_seen_at IS 'When the oldest of them was seen first.';

CREATE VIEW duebook_reports.due_health AS
 WITH clock AS (
         SELECT clock_timestamp() AS now
        ), kind AS (
         SELECT n.kind,
            n.channel,
            n.enabled
           FROM duebook.intent_kind n
        UNION ALL
         SELECT 'hold_expiry'::text,
            'internal'::text,
            true
        ), waiting AS (
         SELECT d.kind,
            count(*) AS scheduled,
            count(*) FILTER (WHERE (d.due_at <= c_1.now)) AS backlog,
            COALESCE(max(EXTRACT(epoch FROM (c_1.now - d.due_at))) FILTER (WHERE (d.due_at <= c_1.now)), (0)::numeric) AS oldest_due_s,
            min(d.due_at) FILTER (WHERE (d.due_at > c_1.now)) AS next_due_at
           FROM (duebook.due d
             CROSS JOIN clock c_1)
          GROUP BY d.kind
        ), enqueued AS (
         SELECT i.kind,
            count(*) AS enqueued,
            count(*) FILTER (WHERE (b.lease_until < c_1.now)) AS lapsed
           FROM (((duebook.batch b
             CROSS JOIN clock c_1)
             CROSS JOIN LATERAL UNNEST(b.account_ids, b.intent_ids) member(account_id, intent_id))
             JOIN duebook.intent i USING (account_id, intent_id))
          GROUP BY i.kind
        ), held AS (
         SELECT h_1.kind,
            count(*) AS held
           FROM duebook.held h_1
          GROUP BY h_1.kind
        ), in_doubt AS (
         SELECT u_1.kind,
            count(*) AS in_doubt,
            max(EXTRACT(epoch FROM (c_1.now - u_1.since))) AS oldest_in_doubt_s
           FROM (duebook.in_doubt u_1
             CROSS JOIN clock c_1)
          GROUP BY u_1.kind
        )
 SELECT k.kind,
    k.channel,
    k.enabled,
    COALESCE(w.scheduled, (0)::bigint) AS scheduled,
    COALESCE(w.backlog, (0)::bigint) AS backlog,
    round(COALESCE(w.oldest_due_s, (0)::numeric), 3) AS oldest_due_s,
    w.next_due_at,
    COALESCE(e.enqueued, (0)::bigint) AS enqueued,
    COALESCE(e.lapsed, (0)::bigint) AS lapsed,
    COALESCE(h.held, (0)::bigint) AS held,
    COALESCE(u.in_doubt, (0)::bigint) AS in_doubt,
    round(COALESCE(u.oldest_in_doubt_s, (0)::numeric), 3) AS oldest_in_doubt_s,
    g.paused_until,
    c.now AS read_at
   FROM ((((((kind k
     CROSS JOIN clock c)
     LEFT JOIN waiting w ON ((k.kind = w.kind)))
     LEFT JOIN enqueued e ON ((k.kind = e.kind)))
     LEFT JOIN held h ON ((k.kind = h.kind)))
     LEFT JOIN in_doubt u ON ((k.kind = u.kind)))
     LEFT JOIN duebook.budget g ON (((k.channel = g.channel) AND (c.now < g.paused_until))));

COMMENT ON VIEW duebook_reports.due_health IS 'Is a promise at risk? One row per kind of notice, and one for the expiry of holds, as of now.';

COMMENT ON COLUMN duebook_reports.due_health.kind IS 'Kind of notice.';

COMMENT ON COLUMN duebook_reports.due_health.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook_reports.due_health.enabled IS 'Whether changes make notices of this kind.';

COMMENT ON COLUMN duebook_reports.due_health.scheduled IS 'Waiting for their time or for a claim.';

COMMENT ON COLUMN duebook_reports.due_health.backlog IS 'Of these, due now.';

COMMENT ON COLUMN duebook_reports.due_health.oldest_due_s IS 'Age of the oldest due one, seconds; 0 without backlog.';

COMMENT ON COLUMN duebook_reports.due_health.next_due_at IS 'When the next one becomes due.';

COMMENT ON COLUMN duebook_reports.due_health.enqueued IS 'Held by senders.';

COMMENT ON COLUMN duebook_reports.due_health.lapsed IS 'Of these, under a lease that is over: rescue takes them.';

COMMENT ON COLUMN duebook_reports.due_health.held IS 'Waiting for a cause to clear.';

COMMENT ON COLUMN duebook_reports.due_health.in_doubt IS 'The provider may have accepted: for a person.';

COMMENT ON COLUMN duebook_reports.due_health.oldest_in_doubt_s IS 'Age of the oldest of these, seconds.';

COMMENT ON COLUMN duebook_reports.due_health.paused_until IS 'Until when the channel is paused; null: it is not.';

COMMENT ON COLUMN duebook_reports.due_health.read_at IS 'Database clock of this row.';

CREATE VIEW duebook_reports.entry_allocations AS
 SELECT s.provider_account,
    s.entry_id,
    s.account_id,
    s.payment_id,
    e.payment_ref AS group_reference,
    e.entry_type,
    s.gross_minor,
    s.fee_minor,
    s.net_minor,
    e.currency,
    e.net_currency,
    duebook.major_amount(s.gross_minor, e.currency, a.provider) AS gross,
    duebook.major_amount(s.fee_minor, e.net_currency, a.provider) AS fee,
    duebook.major_amount(s.net_minor, e.net_currency, a.provider) AS net,
    s.run_id
   FROM ((duebook.entry_allocation s
     JOIN duebook.settlement_entry e ON (((s.provider_account = e.provider_account) AND (s.entry_id = e.entry_id))))
     LEFT JOIN duebook.provider_account a ON ((s.provider_account = a.provider_account)));

COMMENT ON VIEW duebook_reports.entry_allocations IS 'The shares of entries that pay several booked payments at once; together they are the entry.';

COMMENT ON COLUMN duebook_reports.entry_allocations.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook_reports.entry_allocations.entry_id IS 'Entry that is shared.';

COMMENT ON COLUMN duebook_reports.entry_allocations.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.entry_allocations.payment_id IS 'Booked payment that has the share.';

COMMENT ON COLUMN duebook_reports.entry_allocations.group_reference IS 'Reference of the group, as the entry carries it.';

COMMENT ON COLUMN duebook_reports.entry_allocations.entry_type IS 'Type of the entry.';

COMMENT ON COLUMN duebook_reports.entry_allocations.gross_minor IS 'Share of the gross, minor units of currency.';

COMMENT ON COLUMN duebook_reports.entry_allocations.fee_minor IS 'Share of the fee, minor units of net_currency.';

COMMENT ON COLUMN duebook_reports.entry_allocations.net_minor IS 'Share of the net, minor units of net_currency.';

COMMENT ON COLUMN duebook_reports.entry_allocations.currency IS 'Gross currency.';

COMMENT ON COLUMN duebook_reports.entry_allocations.net_currency IS 'Currency of fee and net.';

COMMENT ON COLUMN duebook_reports.entry_allocations.gross IS 'Share of the gross in major units, exact.';

COMMENT ON COLUMN duebook_reports.entry_allocations.fee IS 'Share of the fee in major units, exact.';

COMMENT ON COLUMN duebook_reports.entry_allocations.net IS 'Share of the net in major units, exact.';

COMMENT ON COLUMN duebook_reports.entry_allocations.run_id IS 'Run that shared it.';

CREATE VIEW duebook_reports.freshness AS
 SELECT a.provider_account,
    a.provider,
    a.mode,
    r.run_id AS last_run_id,
    a.last_full_as_of AS last_as_of,
    r.committed_at AS last_run_at,
    (EXTRACT(epoch FROM (clock_timestamp() - r.committed_at)))::bigint AS last_run_age_s,
    a.newest_entry_at,
    ((a.newest_entry_at AT TIME ZONE 'UTC'::text))::date AS newest_entry_on_utc,
    ((a.newest_entry_at AT TIME ZONE a.zone))::date AS newest_entry_on_provider,
    f.name AS last_file,
    f.received_at AS last_file_at,
    a.cursor_position,
    (EXTRACT(epoch FROM (clock_timestamp() - a.cursor_position)))::bigint AS cursor_age_s,
    e.expected_by,
    ((e.expected_by IS NOT NULL) AND (COALESCE(
        CASE
            WHEN ((a.provider = 'stripe'::text) AND (f.received_at IS NULL)) THEN r.committed_at
            ELSE f.received_at
        END, '-infinity'::timestamp with time zone) <= e.previous_expected_by)) AS is_late
   FROM (((duebook.provider_account a
     LEFT JOIN duebook.reconciliation_run r ON ((a.last_full_run_id = r.run_id)))
     LEFT JOIN LATERAL ( SELECT s.name,
            s.received_at
           FROM duebook.settlement_file s
          WHERE ((s.provider_account = a.provider_account) AND (s.withdrawn_at IS NULL))
          ORDER BY s.file_id DESC
         LIMIT 1) f ON (true))
     LEFT JOIN LATERAL ( SELECT max(x.at) AS expected_by,
            max(x.at) FILTER (WHERE (x.nth = 2)) AS previous_expected_by
           FROM ( SELECT t.at,
                    row_number() OVER (ORDER BY t.at DESC) AS nth
                   FROM (((generate_series(0, 15) b(days_back)
                     CROSS JOIN LATERAL ( SELECT (((clock_timestamp() AT TIME ZONE a.zone))::date - b.days_back) AS on_date) d)
                     CROSS JOIN LATERAL ( SELECT (((a.settings -> 'expect'::text) ->> 'by'::text))::time without time zone AS wall) w)
                     CROSS JOIN LATERAL ( SELECT timezone(a.zone, (d.on_date + w.wall)) AS at) t)
                  WHERE ((t.at <= clock_timestamp()) AND COALESCE((((a.settings -> 'expect'::text) -> 'days'::text) ? upper(to_char((d.on_date)::timestamp with time zone, 'DY'::text))), true))) x) e ON ((a.settings ? 'expect'::text)));

COMMENT ON VIEW duebook_reports.freshness IS 'How old the evidence of each provider account is: last full run, newest entry, last file, cursor.';

COMMENT ON COLUMN duebook_reports.freshness.provider_account IS 'Account.';

COMMENT ON COLUMN duebook_reports.freshness.provider IS 'Provider.';

COMMENT ON COLUMN duebook_reports.freshness.mode IS 'dry_run, shadow or live.';

COMMENT ON COLUMN duebook_reports.freshness.last_run_id IS 'Newest full run; null before the first.';

COMMENT ON COLUMN duebook_reports.freshness.last_as_of IS 'Its as-of.';

COMMENT ON COLUMN duebook_reports.freshness.last_run_at IS 'When it committed.';

COMMENT ON COLUMN duebook_reports.freshness.last_run_age_s IS 'Seconds since.';

COMMENT ON COLUMN duebook_reports.freshness.newest_entry_at IS 'When the newest entry occurred.';

COMMENT ON COLUMN duebook_reports.freshness.newest_entry_on_utc IS 'Day of that in UTC.';

COMMENT ON COLUMN duebook_reports.freshness.newest_entry_on_provider IS 'Day of that in the provider''s zone.';

COMMENT ON COLUMN duebook_reports.freshness.last_file IS 'Name of the file taken last that still counts.';

COMMENT ON COLUMN duebook_reports.freshness.last_file_at IS 'When it was taken.';

COMMENT ON COLUMN duebook_reports.freshness.cursor_position IS 'For an API: how far it was read.';

COMMENT ON COLUMN duebook_reports.freshness.cursor_age_s IS 'For an API: seconds since the instant up to which it was read.';

COMMENT ON COLUMN duebook_reports.freshness.expected_by IS 'Newest instant at which evidence was to be there ([provider_accounts.….expect]); null: nothing is expected.';

COMMENT ON COLUMN duebook_reports.freshness.is_late IS 'Whether nothing has come since the expected instant before that one: a file did not arrive, or a night was left out.';

CREATE VIEW duebook_reports.holds AS
 SELECT h.account_id,
    h.hold,
    h.resource,
    h.quantity,
    h.payment_id,
    duebook.hold_state(h.*, c.now) AS state,
    h.created_at,
    h.expires_at,
    h.confirmed_at,
    h.cancelled_at,
    h.expired_at,
    h.reheld_at,
    h.refunded_at,
    (duebook.hold_state(h.*, c.now) = ANY (ARRAY['open'::text, 'confirmed'::text, 'reheld'::text])) AS is_taken,
    (EXTRACT(epoch FROM (h.expired_at - h.expires_at)))::numeric(20,3) AS swept_after_s,
    duebook.hold_expiry_key(h.hold, h.expires_at) AS operation_key
   FROM (duebook.hold h
     CROSS JOIN ( SELECT clock_timestamp() AS now) c);

COMMENT ON VIEW duebook_reports.holds IS 'Every reservation and what it is now, by the clock. One row per hold.';

COMMENT ON COLUMN duebook_reports.holds.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.holds.hold IS 'Name of the hold, unique for the account.';

COMMENT ON COLUMN duebook_reports.holds.resource IS 'What it reserves, if something that is counted.';

COMMENT ON COLUMN duebook_reports.holds.quantity IS 'How much of it.';

COMMENT ON COLUMN duebook_reports.holds.payment_id IS 'Payment that is to confirm it, or did.';

COMMENT ON COLUMN duebook_reports.holds.state IS 'open, expired, confirmed, reheld (a payment after its end got it again), refunded (it could not) or cancelled.';

COMMENT ON COLUMN duebook_reports.holds.created_at IS 'When it was created.';

COMMENT ON COLUMN duebook_reports.holds.expires_at IS 'From here on it is expired, unless it was confirmed before.';

COMMENT ON COLUMN duebook_reports.holds.confirmed_at IS 'When it was confirmed or re-held.';

COMMENT ON COLUMN duebook_reports.holds.cancelled_at IS 'When it was cancelled.';

COMMENT ON COLUMN duebook_reports.holds.expired_at IS 'When a sweep recorded its expiry.';

COMMENT ON COLUMN duebook_reports.holds.reheld_at IS 'When a payment after its end got it again.';

COMMENT ON COLUMN duebook_reports.holds.refunded_at IS 'When a payment after its end was to be refunded.';

COMMENT ON COLUMN duebook_reports.holds.is_taken IS 'Whether it takes from its resource now.';

COMMENT ON COLUMN duebook_reports.holds.swept_after_s IS 'Seconds from its end until a sweep recorded it.';

COMMENT ON COLUMN duebook_reports.holds.operation_key IS 'Operation key of its expiry.';

CREATE VIEW duebook_reports.intent_timeline AS
 SELECT i.account_id,
    i.payment_id,
    i.operation_key,
    f.happened_at,
    f.step,
    f.event,
    f.detail,
    f.actor,
    f.attempt_no,
    i.intent_id
   FROM (duebook.intent i
     CROSS JOIN LATERAL ( SELECT c.committed_at AS happened_at,
            1 AS step,
            'ledger_change'::text AS event,
            format('%s: %s to %s'::text, c.change_kind, c.before_status, c.after_status) AS detail,
            format('run %s'::text, c.run_id) AS actor,
            NULL::integer AS attempt_no
           FROM duebook.ledger_change c
          WHERE ((c.account_id = i.account_id) AND (c.change_id = i.change_id))
        UNION ALL
         SELECT i.created_at,
            2,
            'intent'::text,
            format('%s by %s, %s'::text, i.kind, i.channel, i.ownership) AS format,
                CASE
                    WHEN (i.run_id IS NOT NULL) THEN format('run %s'::text, i.run_id)
                    WHEN (i.subject ~~ 'hold:%'::text) THEN 'hold'::text
                    ELSE 'schedule'::text
                END AS "case",
            NULL::integer
        UNION ALL
         SELECT x.changed_at,
            3,
            'intent_change'::text,
            format('due %s: %s'::text, (x.due_at AT TIME ZONE 'UTC'::text), x.reason) AS format,
            'duebook'::text,
            NULL::integer
           FROM duebook.intent_change x
          WHERE ((x.account_id = i.account_id) AND (x.intent_id = i.intent_id))
        UNION ALL
         SELECT r.requested_at,
            3,
            'intent_request'::text,
            format('%s: %s'::text, r.request, r.reason) AS format,
            r.requested_by,
            NULL::integer
           FROM duebook.intent_request r
          WHERE ((r.account_id = i.account_id) AND (r.intent_id = i.intent_id))
        UNION ALL
         SELECT a.claimed_at,
            4,
            'attempt'::text,
            format('claimed in batch %s'::text, a.batch_id) AS format,
            'sweep'::text,
            a.attempt_no
           FROM duebook.attempt a
          WHERE ((a.account_id = i.account_id) AND (a.intent_id = i.intent_id))
        UNION ALL
         SELECT s.finished_at,
            5,
                CASE
                    WHEN s.is_late THEN 'late_result'::text
                    ELSE 'attempt_result'::text
                END AS "case",
            concat_ws(' '::text, s.result, s.reason, s.provider_code) AS concat_ws,
            'sweep'::text,
            s.attempt_no
           FROM duebook.attempt_result s
          WHERE ((s.account_id = i.account_id) AND (s.intent_id = i.intent_id))
        UNION ALL
         SELECT e.happened_at,
            6,
            'audit_event'::text,
            e.action,
            e.actor,
            NULL::integer
           FROM duebook.audit_event e
          WHERE ((e.account_id = i.account_id) AND (e.subject = i.operation_key))
        UNION ALL
         SELECT o.ended_at,
            7,
            'outcome'::text,
            concat_ws(' '::text, o.result, o.reason) AS concat_ws,
            'duebook'::text,
            o.attempt_no
           FROM duebook.outcome o
          WHERE ((o.account_id = i.account_id) AND (o.operation_key = i.operation_key))) f);

COMMENT ON VIEW duebook_reports.intent_timeline IS 'Every fact about every intent, to be ordered by happened_at and step: the audit trail.';

COMMENT ON COLUMN duebook_reports.intent_timeline.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.intent_timeline.payment_id IS 'Payment, if the intent is about one.';

COMMENT ON COLUMN duebook_reports.intent_timeline.operation_key IS 'The idempotency key.';

COMMENT ON COLUMN duebook_reports.intent_timeline.happened_at IS 'When.';

COMMENT ON COLUMN duebook_reports.intent_timeline.step IS 'Order of facts of one instant.';

COMMENT ON COLUMN duebook_reports.intent_timeline.event IS 'ledger_change, intent, intent_change, intent_request, attempt, attempt_result, late_result, audit_event or outcome.';

COMMENT ON COLUMN duebook_reports.intent_timeline.detail IS 'What, without amounts or addresses.';

COMMENT ON COLUMN duebook_reports.intent_timeline.actor IS 'Who or what did it.';

COMMENT ON COLUMN duebook_reports.intent_timeline.attempt_no IS 'Attempt concerned, if one.';

COMMENT ON COLUMN duebook_reports.intent_timeline.intent_id IS 'Intent.';

CREATE VIEW duebook_reports.intents AS
 SELECT i.account_id,
    i.payment_id,
    i.subject,
    i.kind,
    i.channel,
    i.operation_key,
    i.notify_at,
    COALESCE(o.due_at, d.due_at, h.due_at, u.due_at, a.due_at, i.notify_at) AS due_at,
        CASE
            WHEN (o.operation_key IS NOT NULL) THEN o.result
            WHEN (d.intent_id IS NOT NULL) THEN 'scheduled'::text
            WHEN (h.intent_id IS NOT NULL) THEN 'held'::text
            WHEN (u.intent_id IS NOT NULL) THEN 'unknown'::text
            WHEN (b.batch_id IS NOT NULL) THEN 'enqueued'::text
            WHEN (p.intent_id IS NOT NULL) THEN 'proposed'::text
            ELSE 'lost'::text
        END AS state,
    COALESCE(o.reason, h.cause, u.cause) AS reason,
    COALESCE((d.tries)::integer, (h.tries)::integer, (u.tries)::integer, (a.tries)::integer, 0) AS tries,
    COALESCE(d.claims, h.claims, u.claims, a.attempt_no, 0) AS claims,
    i.give_up_at,
    i.provider_account,
    i.run_id,
    i.ownership,
    COALESCE(o.ended_at, h.since, u.since, b.claimed_at, p.proposed_at, i.created_at) AS since,
    i.created_at,
    i.intent_id,
    e.cohort,
    c.entry_id,
    c.entry_version
   FROM (((((((((duebook.intent i
     LEFT JOIN duebook.outcome o ON (((i.account_id = o.account_id) AND (i.operation_key = o.operation_key))))
     LEFT JOIN duebook.proposed p ON (((i.account_id = p.account_id) AND (i.intent_id = p.intent_id))))
     LEFT JOIN duebook.due d ON (((i.account_id = d.account_id) AND (i.intent_id = d.intent_id))))
     LEFT JOIN duebook.held h ON (((i.account_id = h.account_id) AND (i.intent_id = h.intent_id))))
     LEFT JOIN duebook.in_doubt u ON (((i.account_id = u.account_id) AND (i.intent_id = u.intent_id))))
     LEFT JOIN LATERAL ( SELECT t.batch_id,
            t.attempt_no,
            t.due_at,
            t.tries
           FROM duebook.attempt t
          WHERE ((t.account_id = i.account_id) AND (t.intent_id = i.intent_id))
          ORDER BY t.attempt_no DESC
         LIMIT 1) a ON (true))
     LEFT JOIN duebook.batch b ON ((a.batch_id = b.batch_id)))
     LEFT JOIN duebook.cohort e ON ((i.cohort_version = e.cohort_version)))
     LEFT JOIN duebook.ledger_change c ON (((i.account_id = c.account_id) AND (i.change_id = c.change_id))));

COMMENT ON VIEW duebook_reports.intents IS 'Every promise to an account and where it stands now. One row per intent.';

COMMENT ON COLUMN duebook_reports.intents.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.intents.payment_id IS 'Payment it is about, if one.';

COMMENT ON COLUMN duebook_reports.intents.subject IS 'What it is about: payment:<payment>.';

COMMENT ON COLUMN duebook_reports.intents.kind IS 'Kind, such as payment_settled.';

COMMENT ON COLUMN duebook_reports.intents.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook_reports.intents.operation_key IS 'The idempotency key; unique in the account.';

COMMENT ON COLUMN duebook_reports.intents.notify_at IS 'UTC instant at which it was promised to become due.';

COMMENT ON COLUMN duebook_reports.intents.due_at IS 'UTC instant that counts now, after deferrals.';

COMMENT ON COLUMN duebook_reports.intents.state IS 'proposed, scheduled, enqueued, unknown, held, sent, done or expired; lost is a violation.';

COMMENT ON COLUMN duebook_reports.intents.reason IS 'Why it expired, is held or is unknown.';

COMMENT ON COLUMN duebook_reports.intents.tries IS 'Tries burnt.';

COMMENT ON COLUMN duebook_reports.intents.claims IS 'Claims so far.';

COMMENT ON COLUMN duebook_reports.intents.give_up_at IS 'From here on it is too late.';

COMMENT ON COLUMN duebook_reports.intents.provider_account IS 'Provider account whose evidence made it.';

COMMENT ON COLUMN duebook_reports.intents.run_id IS 'Reconciliation run that made it.';

COMMENT ON COLUMN duebook_reports.intents.ownership IS 'Mode in force when its change committed.';

COMMENT ON COLUMN duebook_reports.intents.since IS 'Since when it stands where it stands.';

COMMENT ON COLUMN duebook_reports.intents.created_at IS 'When it was written.';

COMMENT ON COLUMN duebook_reports.intents.intent_id IS 'Identity, in the order of writing.';

COMMENT ON COLUMN duebook_reports.intents.cohort IS 'Cohort that decided its ownership; null: the provider account''s own mode.';

COMMENT ON COLUMN duebook_reports.intents.entry_id IS 'Settlement entry that is its evidence; null where none is.';

COMMENT ON COLUMN duebook_reports.intents.entry_version IS 'Version of that entry.';

CREATE VIEW duebook_reports.ledger_vs_provider AS
 SELECT p.account_id,
    p.payment_id,
    p.reference,
    p.provider_account,
    s.provider_accounts AS settled_by,
    p.booked_status,
    p.is_void,
    duebook.settled_status(p.amount_minor, s.captured_minor, s.refunded_minor, s.charged_back_minor) AS settled_status,
    p.currency,
    p.amount_minor AS ledger_minor,
    s.captured_minor AS provider_minor,
    (s.captured_minor - p.amount_minor) AS difference_minor,
    s.refunded_minor,
    s.charged_back_minor,
    s.pending_minor,
    duebook.major_amount(p.amount_minor, p.currency, a.provider) AS ledger_amount,
    duebook.major_amount(s.captured_minor, p.currency, a.provider) AS provider_amount,
    duebook.major_amount((s.captured_minor - p.amount_minor), p.currency, a.provider) AS difference,
    s.entry_count,
    p.expected_at,
    ((p.expected_at AT TIME ZONE 'UTC'::text))::date AS expected_on_utc,
    ((p.expected_at AT TIME ZONE COALESCE(a.zone, 'UTC'::text)))::date AS expected_on_provider
   FROM ((duebook.ledger_payment p
     LEFT JOIN duebook.provider_account a ON ((p.provider_account = a.provider_account)))
     CROSS JOIN LATERAL ( SELECT array_agg(DISTINCT o.provider_account) AS provider_accounts,
            (COALESCE(sum(o.captured_minor) FILTER (WHERE (o.currency = p.currency)), (0)::numeric))::bigint AS captured_minor,
            (COALESCE(sum(o.refunded_minor) FILTER (WHERE (o.currency = p.currency)), (0)::numeric))::bigint AS refunded_minor,
            (COALESCE(sum(o.charged_back_minor) FILTER (WHERE (o.currency = p.currency)), (0)::numeric))::bigint AS charged_back_minor,
            (COALESCE(sum(o.pending_minor) FILTER (WHERE (o.currency = p.currency)), (0)::numeric))::bigint AS pending_minor,
            COALESCE(sum(o.entry_count), (0)::bigint) AS entry_count
           FROM duebook.settled_position o
          WHERE ((o.account_id = p.account_id) AND (o.payment_id = p.payment_id))) s);

COMMENT ON VIEW duebook_reports.ledger_vs_provider IS 'Every booked payment with its settled side, summed over all provider accounts in the booked currency.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.payment_id IS 'Payment.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.reference IS 'Reference that settlement entries carry.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.provider_account IS 'Provider account that is to settle it; null: unrouted.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.settled_by IS 'Provider accounts that have evidence of it.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.booked_status IS 'Status as the books say it.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.is_void IS 'True: the books cancelled it.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.settled_status IS 'expected, partially_settled, settled, over_settled, partially_refunded, refunded, charged_back.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.currency IS 'Booked currency, of all amounts here.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.ledger_minor IS 'Expected amount, minor units.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.provider_minor IS 'Captured, minor units.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.difference_minor IS 'Captured less expected, minor units.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.refunded_minor IS 'Refunded, minor units.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.charged_back_minor IS 'Charged back, minor units.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.pending_minor IS 'Announced and not yet settled, minor units.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.ledger_amount IS 'Expected amount, major units, exact.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.provider_amount IS 'Captured, major units, exact.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.difference IS 'Captured less expected, major units, exact.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.entry_count IS 'Entries that stand behind it.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.expected_at IS 'When the settlement is expected.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.expected_on_utc IS 'Day of that in UTC.';

COMMENT ON COLUMN duebook_reports.ledger_vs_provider.expected_on_provider IS 'Day of that in the provider''s zone.';

CREATE VIEW duebook_reports.occurrences AS
 SELECT c.account_id,
    c.schedule,
    c.nominal_on,
    c.intended_local,
    c.zone,
    c.case_of,
    c.due_at,
    c.tzdb_version,
    i.operation_key,
    i.kind,
    i.channel,
    v.state,
    v.reason,
    o.result,
    o.ended_at,
    (round(EXTRACT(epoch FROM (o.ended_at - c.due_at))))::bigint AS late_seconds,
    o.provider_message_id,
    c.rule_version,
    c.written_at,
    c.intent_id
   FROM (((duebook.occurrence c
     LEFT JOIN duebook.intent i ON (((c.account_id = i.account_id) AND (c.intent_id = i.intent_id))))
     LEFT JOIN duebook.outcome o ON (((i.account_id = o.account_id) AND (i.operation_key = o.operation_key))))
     LEFT JOIN duebook_reports.intents v ON (((c.account_id = v.account_id) AND (c.intent_id = v.intent_id))));

COMMENT ON VIEW duebook_reports.occurrences IS 'The four facts of each occurrence of a schedule: intended local time and zone, UTC due time, operation key, outcome. One row per nominal date.';

COMMENT ON COLUMN duebook_reports.occurrences.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.occurrences.schedule IS 'Schedule.';

COMMENT ON COLUMN duebook_reports.occurrences.nominal_on IS 'Date of the rule, before a business-day shift.';

COMMENT ON COLUMN duebook_reports.occurrences.intended_local IS 'Local time that was meant.';

COMMENT ON COLUMN duebook_reports.occurrences.zone IS 'Zone of that local time.';

COMMENT ON COLUMN duebook_reports.occurrences.case_of IS 'exact; gap or overlap of the clock; absent: the month has no such day; unknown_zone: no instant yet.';

COMMENT ON COLUMN duebook_reports.occurrences.due_at IS 'UTC instant of that local time, before any deferral; null while its zone is unknown.';

COMMENT ON COLUMN duebook_reports.occurrences.tzdb_version IS 'Time zone data that computed it.';

COMMENT ON COLUMN duebook_reports.occurrences.operation_key IS 'The idempotency key; unique in the account.';

COMMENT ON COLUMN duebook_reports.occurrences.kind IS 'Kind of notice.';

COMMENT ON COLUMN duebook_reports.occurrences.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook_reports.occurrences.state IS 'scheduled, enqueued, unknown, held, sent or expired.';

COMMENT ON COLUMN duebook_reports.occurrences.reason IS 'Why it expired, is held or is unknown.';

COMMENT ON COLUMN duebook_reports.occurrences.result IS 'How it ended: sent or expired; null: not yet.';

COMMENT ON COLUMN duebook_reports.occurrences.ended_at IS 'When it ended.';

COMMENT ON COLUMN duebook_reports.occurrences.late_seconds IS 'How long after its instant it ended, in seconds.';

COMMENT ON COLUMN duebook_reports.occurrences.provider_message_id IS 'The provider''s id of the message, where sent.';

COMMENT ON COLUMN duebook_reports.occurrences.rule_version IS 'Version of the rule that computed it.';

COMMENT ON COLUMN duebook_reports.occurrences.written_at IS 'When it was written.';

COMMENT ON COLUMN duebook_reports.occurrences.intent_id IS 'Intent that promises it.';

CREATE VIEW duebook_reports.outcomes AS
 SELECT account_id,
    payment_id,
    operation_key,
    result,
    reason,
    intended_local,
    zone,
    due_at,
    ended_at,
    provider_message_id,
    kind,
    attempt_no,
    intent_id,
    ((ended_at AT TIME ZONE 'UTC'::text))::date AS ended_on_utc
   FROM duebook.outcome o;

COMMENT ON VIEW duebook_reports.outcomes IS 'How every operation key ended: exactly one permanent row a key.';

COMMENT ON COLUMN duebook_reports.outcomes.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.outcomes.payment_id IS 'Payment it was about, if one.';

COMMENT ON COLUMN duebook_reports.outcomes.operation_key IS 'The idempotency key.';

COMMENT ON COLUMN duebook_reports.outcomes.result IS 'sent, done (an internal act) or expired.';

COMMENT ON COLUMN duebook_reports.outcomes.reason IS 'Why it expired.';

COMMENT ON COLUMN duebook_reports.outcomes.intended_local IS 'Nominal local time, for promises on a calendar.';

COMMENT ON COLUMN duebook_reports.outcomes.zone IS 'Zone of the nominal local time.';

COMMENT ON COLUMN duebook_reports.outcomes.due_at IS 'UTC due time that counted.';

COMMENT ON COLUMN duebook_reports.outcomes.ended_at IS 'When it ended.';

COMMENT ON COLUMN duebook_reports.outcomes.provider_message_id IS 'The provider''s id of the message, where sent.';

COMMENT ON COLUMN duebook_reports.outcomes.kind IS 'Kind of the intent.';

COMMENT ON COLUMN duebook_reports.outcomes.attempt_no IS 'Attempt that ended it; null when none was needed.';

COMMENT ON COLUMN duebook_reports.outcomes.intent_id IS 'Intent.';

COMMENT ON COLUMN duebook_reports.outcomes.ended_on_utc IS 'UTC day on which it ended.';

CREATE VIEW duebook_reports.reconciliation_runs AS
 SELECT r.run_id,
    r.provider_account,
    r.scope,
    r.mode,
    r.as_of,
    ((r.as_of AT TIME ZONE 'UTC'::text))::date AS as_of_on_utc,
    ((r.as_of AT TIME ZONE a.zone))::date AS as_of_on_provider,
    r.started_at,
    r.committed_at,
    (EXTRACT(epoch FROM (r.committed_at - r.started_at)))::numeric(12,3) AS duration_s,
    r.triggered_by,
    r.entries_new,
    r.entries_changed,
    r.entries_unchanged,
    r.entries_stale,
    r.quarantined,
    r.matched,
    r.pending,
    r.discrepancies,
    r.ledger_changes,
    r.intents
   FROM (duebook.reconciliation_run r
     LEFT JOIN duebook.provider_account a ON ((r.provider_account = a.provider_account)));

COMMENT ON VIEW duebook_reports.reconciliation_runs IS 'Committed reconciliation runs, one row each; a dry run leaves none.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.run_id IS 'Run.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.provider_account IS 'Account that was compared.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.scope IS 'full judges absence; payments and window only what is inside.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.mode IS 'Mode of the account when it ran.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.as_of IS 'Instant for which pending and missing were judged.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.as_of_on_utc IS 'Day of that in UTC.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.as_of_on_provider IS 'Day of that in the provider''s zone.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.started_at IS 'Database clock before the first byte was read.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.committed_at IS 'Database clock when it was applied.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.duration_s IS 'Seconds between the two.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.triggered_by IS 'Who or what asked for it.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.entries_new IS 'Entries seen for the first time.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.entries_changed IS 'Entries with a new current version.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.entries_unchanged IS 'Entries equal to their current version, rows of known files included.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.entries_stale IS 'Entries that an older source described.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.quarantined IS 'Rows that could not be read.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.matched IS 'Booked payments that match.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.pending IS 'Booked payments still inside the settlement promise.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.discrepancies IS 'Open discrepancies of the account after the run, by kind.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.ledger_changes IS 'Ledger changes written.';

COMMENT ON COLUMN duebook_reports.reconciliation_runs.intents IS 'Intents written.';

CREATE VIEW duebook_reports.rollout_comparison AS
 WITH ours AS MATERIALIZED (
         SELECT i.account_id,
            i.intent_id,
            i.operation_key,
            i.kind,
            i.channel,
            i.payment_id,
            i.provider_account,
            i.run_id,
            i.change_id,
            i.cohort_version,
            duebook.current_ownership(i.account_id, i.intent_id, i.ownership) AS ownership,
            i.notify_at,
            o.result,
            o.ended_at
           FROM (duebook.intent i
             LEFT JOIN duebook.outcome o ON (((i.account_id = o.account_id) AND (i.operation_key = o.operation_key))))
          WHERE ((i.run_id IS NOT NULL) AND (i.operation_key !~~ 'resend:%'::text) AND (i.ownership <> 'dry_run'::text) AND (EXISTS ( SELECT
                   FROM duebook.old_sender)))
        ), keyed AS MATERIALIZED (
         SELECT s.account_id,
            s.operation_key,
            s.sender,
            min(s.kind) AS kind,
            min(s.channel) AS channel,
            min(s.payment_id) AS payment_id,
            COALESCE(min(s.sent_at) FILTER (WHERE (s.source <> 'asked'::text)), min(s.sent_at)) AS sent_at,
            GREATEST(count(*) FILTER (WHERE (s.source <> 'asked'::text)), (1)::bigint) AS send_count,
            string_agg(DISTINCT s.source, ', '::text) AS source,
            min(s.external_id) AS external_id
           FROM duebook.observed_send s
          WHERE (s.operation_key IS NOT NULL)
          GROUP BY s.account_id, s.operation_key, s.sender
        ), our_turn AS (
         SELECT o.account_id,
            o.intent_id,
            o.payment_id,
            o.kind,
            row_number() OVER (PARTITION BY o.account_id, o.payment_id, o.kind ORDER BY o.notify_at, o.intent_id) AS turn
           FROM ours o
          WHERE (NOT (EXISTS ( SELECT
                   FROM keyed k
                  WHERE ((k.account_id = o.account_id) AND (k.operation_key = o.operation_key)))))
        ), their_turn AS (
         SELECT s.observed_send_id,
            s.sender,
            s.source,
            s.external_id,
            s.account_id,
            s.operation_key,
            s.kind,
            s.channel,
            s.payment_id,
            s.sent_at,
            s.recorded_at,
            row_number() OVER (PARTITION BY s.account_id, s.payment_id, s.kind, s.sender ORDER BY s.sent_at, s.observed_send_id) AS turn
           FROM duebook.observed_send s
          WHERE (s.operation_key IS NULL)
        ), theirs AS (
         SELECT k.account_id,
            o.intent_id,
            k.operation_key,
            k.sender,
            k.kind,
            k.channel,
            k.payment_id,
            k.sent_at,
            k.send_count,
            k.source,
            k.external_id
           FROM (keyed k
             LEFT JOIN ours o ON (((k.account_id = o.account_id) AND (k.operation_key = o.operation_key))))
        UNION ALL
         SELECT t.account_id,
            u.intent_id,
            NULL::text,
            t.sender,
            t.kind,
            t.channel,
            t.payment_id,
            t.sent_at,
            1,
            t.source,
            t.external_id
           FROM (their_turn t
             LEFT JOIN our_turn u ON (((t.account_id = u.account_id) AND (t.payment_id = u.payment_id) AND (t.kind = u.kind) AND (t.turn = u.turn))))
        ), paired AS (
         SELECT COALESCE(o.account_id, t.account_id) AS account_id,
            COALESCE(o.payment_id, t.payment_id,
                CASE
                    WHEN (b.provider_account IS NOT NULL) THEN replace(replace(split_part(t.operation_key, ':'::text, 4), '%3A'::text, ':'::text), '%25'::text, '%'::text)
                    ELSE NULL::text
                END) AS payment_id,
            COALESCE(o.kind, t.kind) AS kind,
            COALESCE(o.channel, t.channel) AS channel,
            COALESCE(o.operation_key, t.operation_key) AS operation_key,
            COALESCE(o.provider_account, b.provider_account) AS provider_account,
            o.intent_id,
            o.run_id,
            o.change_id,
            o.ownership,
            NULLIF(o.cohort_version, 0) AS cohort_version,
            o.notify_at AS ours_at,
            ((o.intent_id IS NOT NULL) AND ((o.result IS DISTINCT FROM 'expired'::text) OR (o.ended_at > o.notify_at))) AS is_ours,
            COALESCE((o.result = 'sent'::text), false) AS is_sent_by_us,
            t.sender,
            t.sent_at AS theirs_at,
            COALESCE(t.send_count, (0)::bigint) AS send_count,
            t.source,
            t.external_id,
            COALESCE(d.same_within, w.same_within) AS same_within
           FROM ((((ours o
             FULL JOIN theirs t ON (((o.account_id = t.account_id) AND (o.intent_id = t.intent_id))))
             LEFT JOIN duebook.old_sender d ON ((t.sender = d.sender)))
             LEFT JOIN duebook.provider_account b ON ((split_part(t.operation_key, ':'::text, 3) = duebook.key_part(b.provider_account))))
             CROSS JOIN ( SELECT max(s.same_within) AS same_within
                   FROM duebook.old_sender s) w)
        )
 SELECT ((COALESCE(r.as_of, p.theirs_at) AT TIME ZONE COALESCE(a.zone, 'UTC'::text)))::date AS night,
    p.provider_account,
    p.account_id,
    p.payment_id,
    p.kind,
    p.channel,
    p.operation_key,
        CASE
            WHEN ((p.sender IS NULL) AND (NOT p.is_ours)) THEN 'neither'::text
            WHEN ((p.sender IS NULL) AND (p.ownership <> 'live'::text) AND (clock_timestamp() < (p.ours_at + p.same_within))) THEN 'waiting'::text
            WHEN (p.sender IS NULL) THEN 'only_ours'::text
            WHEN (NOT p.is_ours) THEN 'only_theirs'::text
            WHEN (p.theirs_at > (p.ours_at + p.same_within)) THEN 'earlier'::text
            WHEN (p.theirs_at < (p.ours_at - p.same_within)) THEN 'later'::text
            ELSE 'both'::text
        END AS verdict,
    p.ownership,
    c.cohort,
    p.cohort_version,
    p.ours_at,
    p.theirs_at,
    p.is_sent_by_us,
    (p.send_count)::integer AS theirs_count,
    (((p.is_sent_by_us)::integer + p.send_count) > 1) AS is_doubled,
    p.run_id,
    l.entry_id,
    l.entry_version,
    l.before_status,
    l.after_status,
    p.sender,
    p.source,
    p.external_id
   FROM ((((paired p
     LEFT JOIN duebook.reconciliation_run r ON ((p.run_id = r.run_id)))
     LEFT JOIN duebook.provider_account a ON ((p.provider_account = a.provider_account)))
     LEFT JOIN duebook.cohort c ON ((p.cohort_version = c.cohort_version)))
     LEFT JOIN duebook.ledger_change l ON (((p.account_id = l.account_id) AND (p.change_id = l.change_id))));

COMMENT ON VIEW duebook_reports.rollout_comparison IS 'What Duebook would tell, or told, beside what an old sender told, one row a key, with the evidence of both. Empty without an old sender.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.night IS 'Day of the run that promised it, in the provider''s zone; of what is only theirs, the day of the send.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.provider_account IS 'Provider account whose evidence it is about.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.payment_id IS 'Payment; null where only a key is known that names none.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.kind IS 'Kind of notice.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.channel IS 'Channel.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.operation_key IS 'Operation key; null where theirs came without and none of ours fits.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.verdict IS 'both; only_ours; only_theirs; earlier: ours is the earlier by more than same_within; later: ours is the later; waiting: theirs may still come; neither: ours ended before its time and theirs did not come.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.ownership IS 'Whose the key is: shadow, the old sender''s; live, Duebook''s.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.cohort IS 'Cohort that decided it; null: the provider account''s mode.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.cohort_version IS 'Version of that cohort.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.ours_at IS 'When ours is, or was, to be sent.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.theirs_at IS 'When theirs was sent.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.is_sent_by_us IS 'Whether ours was sent.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.theirs_count IS 'How often they sent it.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.is_doubled IS 'Whether the customer was told more than once.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.run_id IS 'Run that promised ours.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.entry_id IS 'Settlement entry that is the evidence.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.entry_version IS 'Version of that entry.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.before_status IS 'Status of the payment before.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.after_status IS 'Status of the payment after.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.sender IS 'Old sender.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.source IS 'How we know of theirs.';

COMMENT ON COLUMN duebook_reports.rollout_comparison.external_id IS 'Their own id of it.';

CREATE VIEW duebook_reports.schedules AS
 SELECT s.account_id,
    s.schedule,
    s.kind,
    s.channel,
        CASE
            WHEN (s.cancelled_at IS NOT NULL) THEN 'cancelled'::text
            WHEN (s.zone_missing_since IS NOT NULL) THEN 'zone_unknown'::text
            WHEN ((s.next_on IS NULL) AND (w.waiting = 0)) THEN 'ended'::text
            ELSE 'active'::text
        END AS state,
    s.frequency,
    s.every,
    s.weekdays,
    s.month_day,
    s.nth,
    s.business_shift,
    s.holiday_calendar,
    s.zone,
    s.wall_time,
    s.absent,
    s.gap,
    s.overlap,
    s.starts_on,
    s.ends_on,
    s.occurrence_count,
    s.catch_up,
    s.catch_up_window,
    s.max_occurrences,
    s.spread_per_minute,
    s.rule_version,
    s.next_on,
    w.waiting,
        CASE
            WHEN (s.cancelled_at IS NULL) THEN w.next_due_at
            ELSE NULL::timestamp with time zone
        END AS next_due_at,
    s.put_at,
    s.put_by,
    s.cancelled_at,
    s.cancelled_by,
    s.zone_missing_since
   FROM (duebook.schedule s
     CROSS JOIN LATERAL ( SELECT (count(*))::integer AS waiting,
            min(c.due_at) AS next_due_at
           FROM (duebook.occurrence c
             JOIN duebook.intent i ON (((c.account_id = i.account_id) AND (c.intent_id = i.intent_id))))
          WHERE ((c.account_id = s.account_id) AND (c.schedule = s.schedule) AND (NOT (EXISTS ( SELECT
                   FROM duebook.outcome o
                  WHERE ((o.account_id = i.account_id) AND (o.operation_key = i.operation_key))))))) w);

COMMENT ON VIEW duebook_reports.schedules IS 'Weekly and monthly rules, their policies and how far they are written. One row per schedule.';

COMMENT ON COLUMN duebook_reports.schedules.account_id IS 'Customer account.';

COMMENT ON COLUMN duebook_reports.schedules.schedule IS 'Name of the schedule, unique in the account.';

COMMENT ON COLUMN duebook_reports.schedules.kind IS 'Kind of notice.';

COMMENT ON COLUMN duebook_reports.schedules.channel IS 'Channel that carries it.';

COMMENT ON COLUMN duebook_reports.schedules.state IS 'active; zone_unknown: its zone is in no time zone data here and its occurrences are held; ended: every occurrence has ended; cancelled.';

COMMENT ON COLUMN duebook_reports.schedules.frequency IS 'weekly or monthly.';

COMMENT ON COLUMN duebook_reports.schedules.every IS 'Every so many weeks or months.';

COMMENT ON COLUMN duebook_reports.schedules.weekdays IS 'ISO weekdays, 1 is Monday.';

COMMENT ON COLUMN duebook_reports.schedules.month_day IS 'Day of the month; -1: the last.';

COMMENT ON COLUMN duebook_reports.schedules.nth IS 'Which of the weekdays in a month; -1: the last.';

COMMENT ON COLUMN duebook_reports.schedules.business_shift IS 'Where a weekend or holiday moves: none, next or previous.';

COMMENT ON COLUMN duebook_reports.schedules.holiday_calendar IS 'Whose holidays count.';

COMMENT ON COLUMN duebook_reports.schedules.zone IS 'IANA zone of the wall time.';

COMMENT ON COLUMN duebook_reports.schedules.wall_time IS 'Local time of day.';

COMMENT ON COLUMN duebook_reports.schedules.absent IS 'A date that a month does not have: omit, backward or forward.';

COMMENT ON COLUMN duebook_reports.schedules.gap IS 'A local time that the clock skips: skip, earlier or later.';

COMMENT ON COLUMN duebook_reports.schedules.overlap IS 'A local time that comes twice: earlier or later.';

COMMENT ON COLUMN duebook_reports.schedules.starts_on IS 'First local date.';

COMMENT ON COLUMN duebook_reports.schedules.ends_on IS 'Last local date.';

COMMENT ON COLUMN duebook_reports.schedules.occurrence_count IS 'At most so many occurrences.';

COMMENT ON COLUMN duebook_reports.schedules.catch_up IS 'What happens to missed ones: all, latest or skip.';

COMMENT ON COLUMN duebook_reports.schedules.catch_up_window IS 'How old a missed one may be and still be sent.';

COMMENT ON COLUMN duebook_reports.schedules.max_occurrences IS 'At most so many missed ones are sent.';

COMMENT ON COLUMN duebook_reports.schedules.spread_per_minute IS 'Rate while catching up.';

COMMENT ON COLUMN duebook_reports.schedules.rule_version IS 'Counts the edits of the rule.';

COMMENT ON COLUMN duebook_reports.schedules.next_on IS 'Next nominal date that is not written yet; null: none is left.';

COMMENT ON COLUMN duebook_reports.schedules.waiting IS 'Occurrences that are written and have no outcome.';

COMMENT ON COLUMN duebook_reports.schedules.next_due_at IS 'When the first of them is due, UTC.';

COMMENT ON COLUMN duebook_reports.schedules.put_at IS 'When its rule was put or last edited.';

COMMENT ON COLUMN duebook_reports.schedules.put_by IS 'Who put it.';

COMMENT ON COLUMN duebook_reports.schedules.cancelled_at IS 'When it was cancelled.';

COMMENT ON COLUMN duebook_reports.schedules.cancelled_by IS 'Who cancelled it.';

COMMENT ON COLUMN duebook_reports.schedules.zone_missing_since IS 'Since when its zone is in no time zone data here.';

CREATE VIEW duebook_reports.settlement_batches AS
 SELECT b.provider_account,
    b.batch_ref,
    b.currency,
    b.sum_minor,
    b.payout_minor,
    b.difference_minor,
    duebook.major_amount(b.sum_minor, b.currency, a.provider) AS sum,
    duebook.major_amount(b.payout_minor, b.currency, a.provider) AS payout,
    duebook.major_amount(b.difference_minor, b.currency, a.provider) AS difference,
    b.entry_count,
    b.status,
    b.is_itemisable,
    b.is_complete,
    b.run_id,
    b.updated_at,
    ((b.updated_at AT TIME ZONE 'UTC'::text))::date AS updated_on_utc,
    ((b.updated_at AT TIME ZONE a.zone))::date AS updated_on_provider
   FROM (duebook.settlement_batch b
     LEFT JOIN duebook.provider_account a ON ((b.provider_account = a.provider_account)));

COMMENT ON VIEW duebook_reports.settlement_batches IS 'Settlement batches per net currency; a batch closes when its difference is 0.';

COMMENT ON COLUMN duebook_reports.settlement_batches.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook_reports.settlement_batches.batch_ref IS 'The provider''s name of the batch or payout.';

COMMENT ON COLUMN duebook_reports.settlement_batches.currency IS 'Net currency.';

COMMENT ON COLUMN duebook_reports.settlement_batches.sum_minor IS 'Net of its entries without the payout, minor units.';

COMMENT ON COLUMN duebook_reports.settlement_batches.payout_minor IS 'Net of its payout rows (negative when paid out), minor units.';

COMMENT ON COLUMN duebook_reports.settlement_batches.difference_minor IS 'Their sum, minor units: 0 when the batch closes.';

COMMENT ON COLUMN duebook_reports.settlement_batches.sum IS 'The same as sum_minor in major units, exact.';

COMMENT ON COLUMN duebook_reports.settlement_batches.payout IS 'The same as payout_minor in major units, exact.';

COMMENT ON COLUMN duebook_reports.settlement_batches.difference IS 'The same as difference_minor in major units, exact.';

COMMENT ON COLUMN duebook_reports.settlement_batches.entry_count IS 'Entries in it, the payout included.';

COMMENT ON COLUMN duebook_reports.settlement_batches.status IS 'closed, carried (no payout, 0: the balance moves on), open (not yet paid out), not_closed, not_itemisable.';

COMMENT ON COLUMN duebook_reports.settlement_batches.is_itemisable IS 'False for a payout whose entries the provider does not name.';

COMMENT ON COLUMN duebook_reports.settlement_batches.is_complete IS 'False while the provider may still name further entries.';

COMMENT ON COLUMN duebook_reports.settlement_batches.run_id IS 'Run that last changed it.';

COMMENT ON COLUMN duebook_reports.settlement_batches.updated_at IS 'When it last changed.';

COMMENT ON COLUMN duebook_reports.settlement_batches.updated_on_utc IS 'Day of that in UTC.';

COMMENT ON COLUMN duebook_reports.settlement_batches.updated_on_provider IS 'Day of that in the provider''s zone.';

CREATE VIEW duebook_reports.settlement_entries AS
 SELECT v.provider_account,
    v.entry_id,
    v.version,
    (v.version = e.version) AS is_current,
    v.entry_type,
    v.provider_type,
    v.batch_ref,
    v.payment_ref,
    v.provider_payment_ref,
        CASE
            WHEN (v.version = e.version) THEN e.account_id
            ELSE NULL::text
        END AS account_id,
        CASE
            WHEN (v.version = e.version) THEN e.payment_id
            ELSE NULL::text
        END AS payment_id,
    v.gross_minor,
    v.fee_minor,
    v.net_minor,
    v.currency,
    v.net_currency,
    duebook.major_amount(v.gross_minor, v.currency, a.provider) AS gross,
    duebook.major_amount(v.fee_minor, v.net_currency, a.provider) AS fee,
    duebook.major_amount(v.net_minor, v.net_currency, a.provider) AS net,
    v.entry_status,
    v.occurred_at,
    ((v.occurred_at AT TIME ZONE 'UTC'::text))::date AS occurred_on_utc,
    ((v.occurred_at AT TIME ZONE a.zone))::date AS occurred_on_provider,
    v.available_at,
    ((v.available_at AT TIME ZONE 'UTC'::text))::date AS available_on_utc,
    ((v.available_at AT TIME ZONE a.zone))::date AS available_on_provider,
    v.source,
    v.line_no,
    v.run_id,
    v.stored_at
   FROM ((( SELECT n.provider_account,
            n.entry_id,
            n.version,
            n.entry_type,
            n.provider_type,
            n.batch_ref,
            n.payment_ref,
            n.provider_payment_ref,
            n.gross_minor,
            n.fee_minor,
            n.net_minor,
            n.currency,
            n.net_currency,
            n.entry_status,
            n.occurred_at,
            n.available_at,
            n.source,
            n.line_no,
            n.run_id,
            n.stored_at
           FROM duebook.settlement_entry_version n
        UNION ALL
         SELECT c.provider_account,
            c.entry_id,
            c.version,
            c.entry_type,
            c.provider_type,
            c.batch_ref,
            c.payment_ref,
            c.provider_payment_ref,
            c.gross_minor,
            c.fee_minor,
            c.net_minor,
            c.currency,
            c.net_currency,
            c.entry_status,
            c.occurred_at,
            c.available_at,
            c.source,
            c.line_no,
            c.run_id,
            r.started_at
           FROM (duebook.settlement_entry c
             LEFT JOIN duebook.reconciliation_run r ON ((c.run_id = r.run_id)))
          WHERE (NOT (EXISTS ( SELECT
                   FROM duebook.settlement_entry_version n
                  WHERE ((n.provider_account = c.provider_account) AND (n.entry_id = c.entry_id) AND (n.version = c.version)))))) v
     JOIN duebook.settlement_entry e ON (((v.provider_account = e.provider_account) AND (v.entry_id = e.entry_id))))
     LEFT JOIN duebook.provider_account a ON ((v.provider_account = a.provider_account)));

COMMENT ON VIEW duebook_reports.settlement_entries IS 'Money rows of the providers, every version; sum only rows with is_current. Amounts in minor units and exact major units.';

COMMENT ON COLUMN duebook_reports.settlement_entries.provider_account IS 'Account it belongs to.';

COMMENT ON COLUMN duebook_reports.settlement_entries.entry_id IS 'Stable identity at the provider.';

COMMENT ON COLUMN duebook_reports.settlement_entries.version IS 'Number of the version, from 1.';

COMMENT ON COLUMN duebook_reports.settlement_entries.is_current IS 'Whether this version counts.';

COMMENT ON COLUMN duebook_reports.settlement_entries.entry_type IS 'charge, refund, chargeback, chargeback_reversal, fee, payout, transfer, reserve, conversion, adjustment, other.';

COMMENT ON COLUMN duebook_reports.settlement_entries.provider_type IS 'The type as the provider wrote it.';

COMMENT ON COLUMN duebook_reports.settlement_entries.batch_ref IS 'Settlement batch or payout, once known.';

COMMENT ON COLUMN duebook_reports.settlement_entries.payment_ref IS 'Reference that booked payments are matched by.';

COMMENT ON COLUMN duebook_reports.settlement_entries.provider_payment_ref IS 'The provider''s own id of the payment.';

COMMENT ON COLUMN duebook_reports.settlement_entries.account_id IS 'Customer account whose payment claims it; null in suspense and for old versions.';

COMMENT ON COLUMN duebook_reports.settlement_entries.payment_id IS 'Payment that claims it; null in suspense and for old versions.';

COMMENT ON COLUMN duebook_reports.settlement_entries.gross_minor IS 'Gross, signed, minor units of currency.';

COMMENT ON COLUMN duebook_reports.settlement_entries.fee_minor IS 'Fee, positive when a cost, minor units of net_currency.';

COMMENT ON COLUMN duebook_reports.settlement_entries.net_minor IS 'Net, signed, minor units of net_currency.';

COMMENT ON COLUMN duebook_reports.settlement_entries.currency IS 'Gross currency.';

COMMENT ON COLUMN duebook_reports.settlement_entries.net_currency IS 'Currency of fee and net.';

COMMENT ON COLUMN duebook_reports.settlement_entries.gross IS 'Gross in major units of currency, exact.';

COMMENT ON COLUMN duebook_reports.settlement_entries.fee IS 'Fee in major units of net_currency, exact.';

COMMENT ON COLUMN duebook_reports.settlement_entries.net IS 'Net in major units of net_currency, exact.';

COMMENT ON COLUMN duebook_reports.settlement_entries.entry_status IS 'pending: announced; settled: counts.';

COMMENT ON COLUMN duebook_reports.settlement_entries.occurred_at IS 'When it happened at the provider.';

COMMENT ON COLUMN duebook_reports.settlement_entries.occurred_on_utc IS 'Day of that in UTC.';

COMMENT ON COLUMN duebook_reports.settlement_entries.occurred_on_provider IS 'Day of that in the provider''s zone.';

COMMENT ON COLUMN duebook_reports.settlement_entries.available_at IS 'When the money is or was available, or booked.';

COMMENT ON COLUMN duebook_reports.settlement_entries.available_on_utc IS 'Day of that in UTC.';

COMMENT ON COLUMN duebook_reports.settlement_entries.available_on_provider IS 'Day of that in the provider''s zone.';

COMMENT ON COLUMN duebook_reports.settlement_entries.source IS 'File name, or api.';

COMMENT ON COLUMN duebook_reports.settlement_entries.line_no IS 'Line in that file, or position in the pull.';

COMMENT ON COLUMN duebook_reports.settlement_entries.run_id IS 'Run that stored this version.';

COMMENT ON COLUMN duebook_reports.settlement_entries.stored_at IS 'When it was stored.';

CREATE VIEW duebook_reports.settlement_file_checks AS
 SELECT c.provider_account,
    f.name AS file,
    f.received_at,
    c.section,
    NULLIF(c.currency, ''::text) AS currency,
    c.check_name,
    c.stated_minor,
    c.computed_minor,
    duebook.major_amount(c.stated_minor, (c.currency)::bpchar, a.provider) AS stated,
    duebook.major_amount(c.computed_minor, (c.currency)::bpchar, a.provider) AS computed,
    c.is_ok,
    f.run_id
   FROM ((duebook.settlement_file_check c
     JOIN duebook.settlement_file f ON ((c.file_id = f.file_id)))
     LEFT JOIN duebook.provider_account a ON ((c.provider_account = a.provider_account)));

COMMENT ON VIEW duebook_reports.settlement_file_checks IS 'What settlement files state about their own rows (totals by currency), beside what the rows come to. A file without its totals was cut.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.provider_account IS 'Account the file belongs to.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.file IS 'File name.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.received_at IS 'When it was taken.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.section IS 'Part of the file: section 1, or report.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.currency IS 'Currency of the amounts; null where the statement names none.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.check_name IS 'gross_credit, gross_debit, fee_credit, fee_debit; section_footer: the totals are missing; totals: they are no numbers.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.stated_minor IS 'What the file states, minor units.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.computed_minor IS 'What its rows come to, minor units.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.stated IS 'What the file states, major units, exact.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.computed IS 'What its rows come to, major units, exact.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.is_ok IS 'Whether the rows come to what is stated.';

COMMENT ON COLUMN duebook_reports.settlement_file_checks.run_id IS 'Run that took the file.';

ALTER TABLE ONLY duebook.settlement_entry_version ATTACH PARTITION duebook.settlement_entry_version_default DEFAULT;

ALTER TABLE ONLY duebook.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY duebook.applied_object
    ADD CONSTRAINT applied_object_pk PRIMARY KEY (path);

ALTER TABLE ONLY duebook.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (account_id, intent_id, attempt_no);

ALTER TABLE ONLY duebook.attempt_result
    ADD CONSTRAINT attempt_result_pkey PRIMARY KEY (account_id, intent_id, attempt_no);

ALTER TABLE ONLY duebook.audit_event
    ADD CONSTRAINT audit_event_pkey PRIMARY KEY (audit_event_id);

ALTER TABLE ONLY duebook.batch_ended
    ADD CONSTRAINT batch_ended_pkey PRIMARY KEY (batch_id);

ALTER TABLE ONLY duebook.batch
    ADD CONSTRAINT batch_pkey PRIMARY KEY (batch_id);

ALTER TABLE ONLY duebook.budget
    ADD CONSTRAINT budget_pkey PRIMARY KEY (channel);

ALTER TABLE ONLY duebook.calendar_state
    ADD CONSTRAINT calendar_state_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY duebook.catch_up_pace
    ADD CONSTRAINT catch_up_pace_pkey PRIMARY KEY (pace);

ALTER TABLE ONLY duebook.channel
    ADD CONSTRAINT channel_pkey PRIMARY KEY (channel);

ALTER TABLE ONLY duebook.claim_cursor
    ADD CONSTRAINT claim_cursor_pkey PRIMARY KEY (channel);

ALTER TABLE ONLY duebook.cohort_member
    ADD CONSTRAINT cohort_member_pkey PRIMARY KEY (cohort_version, account_id);

ALTER TABLE ONLY duebook.cohort
    ADD CONSTRAINT cohort_pkey PRIMARY KEY (cohort_version);

ALTER TABLE ONLY duebook.consent
    ADD CONSTRAINT consent_pkey PRIMARY KEY (account_id, kind, channel);

ALTER TABLE ONLY duebook.contact_cap
    ADD CONSTRAINT contact_cap_pkey PRIMARY KEY (channel);

ALTER TABLE ONLY duebook.contact
    ADD CONSTRAINT contact_pkey PRIMARY KEY (account_id, channel);

ALTER TABLE ONLY duebook.contact_slot
    ADD CONSTRAINT contact_slot_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.currency_exponent
    ADD CONSTRAINT currency_exponent_pkey PRIMARY KEY (provider, currency);

ALTER TABLE ONLY duebook.delivery_report
    ADD CONSTRAINT delivery_report_pkey PRIMARY KEY (delivery_report_id);

ALTER TABLE ONLY duebook.digest_member
    ADD CONSTRAINT digest_member_pkey PRIMARY KEY (account_id, intent_id, attempt_no);

ALTER TABLE ONLY duebook.digest
    ADD CONSTRAINT digest_pkey PRIMARY KEY (account_id, digest_key);

ALTER TABLE ONLY duebook.discrepancy_event
    ADD CONSTRAINT discrepancy_event_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY duebook.discrepancy
    ADD CONSTRAINT discrepancy_pkey PRIMARY KEY (provider_account, kind, subject);

ALTER TABLE ONLY duebook.due
    ADD CONSTRAINT due_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.entry_allocation
    ADD CONSTRAINT entry_allocation_pkey PRIMARY KEY (provider_account, entry_id, account_id, payment_id);

ALTER TABLE ONLY duebook.environment
    ADD CONSTRAINT environment_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY duebook.event_effect
    ADD CONSTRAINT event_effect_pkey PRIMARY KEY (provider_account, event_id);

ALTER TABLE ONLY duebook.fail_over
    ADD CONSTRAINT fail_over_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.failing_contact
    ADD CONSTRAINT failing_contact_pkey PRIMARY KEY (account_id, channel);

ALTER TABLE ONLY duebook.forced_match
    ADD CONSTRAINT forced_match_pkey PRIMARY KEY (provider_account, entry_id);

ALTER TABLE ONLY duebook.held
    ADD CONSTRAINT held_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.hold
    ADD CONSTRAINT hold_pkey PRIMARY KEY (account_id, hold);

ALTER TABLE ONLY duebook.hold_resource
    ADD CONSTRAINT hold_resource_pkey PRIMARY KEY (resource);

ALTER TABLE ONLY duebook.in_doubt
    ADD CONSTRAINT in_doubt_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.incident_intent
    ADD CONSTRAINT incident_intent_pkey PRIMARY KEY (incident_id, account_id, intent_id);

ALTER TABLE ONLY duebook.incident
    ADD CONSTRAINT incident_name_is_unique UNIQUE (name);

ALTER TABLE ONLY duebook.incident
    ADD CONSTRAINT incident_pkey PRIMARY KEY (incident_id);

ALTER TABLE ONLY duebook.intent_change
    ADD CONSTRAINT intent_change_pkey PRIMARY KEY (account_id, intent_id, intent_change_id);

ALTER TABLE ONLY duebook.intent_kind
    ADD CONSTRAINT intent_kind_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY duebook.intent
    ADD CONSTRAINT intent_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.intent_request
    ADD CONSTRAINT intent_request_pkey PRIMARY KEY (account_id, intent_id, intent_request_id);

ALTER TABLE ONLY duebook.ledger_change
    ADD CONSTRAINT ledger_change_pkey PRIMARY KEY (account_id, change_id);

ALTER TABLE ONLY duebook.ledger_payment
    ADD CONSTRAINT ledger_payment_pkey PRIMARY KEY (account_id, payment_id);

ALTER TABLE ONLY duebook.observed_send
    ADD CONSTRAINT observed_send_is_recorded_once UNIQUE (sender, external_id);

ALTER TABLE ONLY duebook.observed_send
    ADD CONSTRAINT observed_send_pkey PRIMARY KEY (observed_send_id);

ALTER TABLE ONLY duebook.occurrence
    ADD CONSTRAINT occurrence_pkey PRIMARY KEY (account_id, schedule, nominal_on);

ALTER TABLE ONLY duebook.old_sender
    ADD CONSTRAINT old_sender_pkey PRIMARY KEY (sender);

ALTER TABLE ONLY duebook.intent
    ADD CONSTRAINT operation_key_is_unique UNIQUE (account_id, operation_key);

ALTER TABLE ONLY duebook.outcome
    ADD CONSTRAINT outcome_pkey PRIMARY KEY (account_id, operation_key);

ALTER TABLE ONLY duebook.ownership_change
    ADD CONSTRAINT ownership_change_pkey PRIMARY KEY (account_id, intent_id, ownership_change_id);

ALTER TABLE ONLY duebook.pause
    ADD CONSTRAINT pause_pkey PRIMARY KEY (scope, name);

ALTER TABLE ONLY duebook.pending_event
    ADD CONSTRAINT pending_event_pkey PRIMARY KEY (provider_account, event_id);

ALTER TABLE ONLY duebook.pending_report
    ADD CONSTRAINT pending_report_pkey PRIMARY KEY (delivery_report_id);

ALTER TABLE ONLY duebook.proposed
    ADD CONSTRAINT proposed_pkey PRIMARY KEY (account_id, intent_id);

ALTER TABLE ONLY duebook.provider_account
    ADD CONSTRAINT provider_account_pkey PRIMARY KEY (provider_account);

ALTER TABLE ONLY duebook.quarantined_row
    ADD CONSTRAINT quarantined_row_pkey PRIMARY KEY (quarantined_row_id);

ALTER TABLE ONLY duebook.quiet_hours
    ADD CONSTRAINT quiet_hours_pkey PRIMARY KEY (quiet_hours_id);

ALTER TABLE ONLY duebook.quiet_hours_statement
    ADD CONSTRAINT quiet_hours_statement_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY duebook.reconciliation_run
    ADD CONSTRAINT reconciliation_run_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY duebook.restore_accepted
    ADD CONSTRAINT restore_accepted_pkey PRIMARY KEY (restore_id);

ALTER TABLE ONLY duebook.retired_reference
    ADD CONSTRAINT retired_reference_pkey PRIMARY KEY (reference, account_id, payment_id, retired_at);

ALTER TABLE ONLY duebook.schedule_past
    ADD CONSTRAINT schedule_past_pkey PRIMARY KEY (account_id, schedule, rule_version);

ALTER TABLE ONLY duebook.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (account_id, schedule);

ALTER TABLE ONLY duebook.sender_key
    ADD CONSTRAINT sender_key_pkey PRIMARY KEY (account_id, operation_key);

ALTER TABLE ONLY duebook.settled_position
    ADD CONSTRAINT settled_position_pkey PRIMARY KEY (account_id, payment_id, provider_account, currency);

ALTER TABLE ONLY duebook.settlement_batch
    ADD CONSTRAINT settlement_batch_pkey PRIMARY KEY (provider_account, batch_ref, currency);

ALTER TABLE ONLY duebook.settlement_entry
    ADD CONSTRAINT settlement_entry_pkey PRIMARY KEY (provider_account, entry_id);

ALTER TABLE ONLY duebook.settlement_entry_version
    ADD CONSTRAINT settlement_entry_version_pkey PRIMARY KEY (provider_account, entry_id, version, stored_at);

ALTER TABLE ONLY duebook.settlement_entry_version_default
    ADD CONSTRAINT settlement_entry_version_default_pkey PRIMARY KEY (provider_account, entry_id, version, stored_at);

ALTER TABLE ONLY duebook.settlement_file_check
    ADD CONSTRAINT settlement_file_check_pkey PRIMARY KEY (file_id, section, currency, check_name);

ALTER TABLE ONLY duebook.settlement_file
    ADD CONSTRAINT settlement_file_pkey PRIMARY KEY (file_id);

ALTER TABLE ONLY duebook.severity_rule
    ADD CONSTRAINT severity_rule_pkey PRIMARY KEY (currency);

ALTER TABLE ONLY duebook.suppression
    ADD CONSTRAINT suppression_pkey PRIMARY KEY (account_id, channel);

ALTER TABLE ONLY duebook.webhook_body
    ADD CONSTRAINT webhook_body_pkey PRIMARY KEY (endpoint, event_id, body_sha256);

ALTER TABLE ONLY duebook.webhook_receipt
    ADD CONSTRAINT webhook_receipt_pkey PRIMARY KEY (endpoint, event_id);

CREATE INDEX audit_event_by_account ON duebook.audit_event USING btree (account_id, happened_at);

CREATE INDEX audit_event_by_catch_up ON duebook.audit_event USING btree (happened_at) WHERE (action = 'catch_up'::text);

CREATE INDEX audit_event_by_subject ON duebook.audit_event USING btree (subject, happened_at);

CREATE INDEX batch_by_lease ON duebook.batch USING btree (lease_until);

CREATE INDEX cohort_by_name ON duebook.cohort USING btree (cohort, cohort_version);

CREATE INDEX contact_slot_by_account ON duebook.contact_slot USING btree (account_id, taken_at);

CREATE INDEX contact_slot_by_time ON duebook.contact_slot USING btree (taken_at);

CREATE UNIQUE INDEX delivery_report_once ON duebook.delivery_report USING btree (channel, provider_message_id, status, code) NULLS NOT DISTINCT;

CREATE INDEX discrepancy_by_payment ON duebook.discrepancy USING btree (account_id, payment_id);

CREATE INDEX discrepancy_event_by_subject ON duebook.discrepancy_event USING btree (provider_account, kind, subject, event_id);

CREATE INDEX discrepancy_open ON duebook.discrepancy USING btree (provider_account, kind) WHERE (closed_at IS NULL);

CREATE INDEX due_alone ON duebook.due USING btree (channel, due_at, intent_id) WHERE (suspicions >= 2);

CREATE INDEX due_by_account ON duebook.due USING btree (channel, account_id, due_at) WHERE (suspicions < 2);

CREATE INDEX due_by_time ON duebook.due USING btree (channel, due_at, intent_id) WHERE (suspicions < 2);

CREATE INDEX entry_allocation_by_payment ON duebook.entry_allocation USING btree (account_id, payment_id);

CREATE INDEX forced_match_to_apply ON duebook.forced_match USING btree (provider_account) WHERE (applied_run_id IS NULL);

CREATE INDEX held_by_retest ON duebook.held USING btree (retest_at, account_id, intent_id);

CREATE INDEX hold_by_name ON duebook.hold USING btree (hold);

CREATE INDEX hold_by_payment ON duebook.hold USING btree (account_id, payment_id) WHERE (payment_id IS NOT NULL);

CREATE INDEX hold_open_by_resource ON duebook.hold USING btree (resource, expires_at) INCLUDE (quantity) WHERE ((confirmed_at IS NULL) AND (cancelled_at IS NULL) AND (expired_at IS NULL));

CREATE UNIQUE INDEX incident_open ON duebook.incident USING btree ((true)) WHERE (closed_at IS NULL);

CREATE INDEX intent_by_run ON duebook.intent USING btree (run_id) WHERE (run_id IS NOT NULL);

CREATE INDEX intent_by_subject ON duebook.intent USING btree (account_id, subject, intent_id);

CREATE INDEX ledger_change_by_payment ON duebook.ledger_change USING btree (account_id, payment_id, change_id);

CREATE INDEX ledger_change_by_run ON duebook.ledger_change USING btree (run_id);

CREATE INDEX ledger_payment_by_group ON duebook.ledger_payment USING btree (group_reference) WHERE (group_reference IS NOT NULL);

CREATE INDEX ledger_payment_by_import ON duebook.ledger_payment USING btree (imported_xid);

CREATE INDEX ledger_payment_by_payment ON duebook.ledger_payment USING btree (payment_id);

CREATE INDEX ledger_payment_by_provider_account ON duebook.ledger_payment USING btree (provider_account, expected_at);

CREATE INDEX ledger_payment_by_reference ON duebook.ledger_payment USING btree (reference);

CREATE INDEX observed_send_by_key ON duebook.observed_send USING btree (account_id, operation_key) WHERE (operation_key IS NOT NULL);

CREATE INDEX observed_send_by_payment ON duebook.observed_send USING btree (account_id, payment_id, kind) WHERE (operation_key IS NULL);

CREATE INDEX observed_send_by_time ON duebook.observed_send USING btree (sent_at);

CREATE INDEX occurrence_by_intent ON duebook.occurrence USING btree (account_id, intent_id);

CREATE INDEX outcome_by_provider_message ON duebook.outcome USING btree (provider_message_id) WHERE (provider_message_id IS NOT NULL);

CREATE INDEX pending_event_by_time ON duebook.pending_event USING btree (not_before, provider_account, event_id);

CREATE UNIQUE INDEX quarantined_row_is_kept_once ON duebook.quarantined_row USING btree (source_kind, COALESCE(provider_account, ''::text), COALESCE(file_sha256, ''::text), line_no, COALESCE(column_name, ''::text));

CREATE INDEX reconciliation_run_by_account ON duebook.reconciliation_run USING btree (provider_account, run_id DESC);

CREATE INDEX retired_reference_by_import ON duebook.retired_reference USING btree (retired_xid);

CREATE INDEX schedule_by_missing_zone ON duebook.schedule USING btree (zone, account_id, schedule) WHERE (zone_missing_since IS NOT NULL);

CREATE INDEX schedule_by_name ON duebook.schedule USING btree (schedule, account_id);

CREATE INDEX schedule_by_next ON duebook.schedule USING btree (next_at, account_id, schedule) WHERE ((next_at IS NOT NULL) AND (cancelled_at IS NULL));

CREATE INDEX schedule_edited ON duebook.schedule USING btree (edited_at, account_id, schedule) WHERE (edited_at IS NOT NULL);

CREATE INDEX schedule_past_by_end ON duebook.schedule_past USING btree (ended_at, account_id, schedule);

CREATE INDEX settled_position_by_provider_account ON duebook.settled_position USING btree (provider_account, account_id, payment_id);

CREATE INDEX settlement_entry_by_batch ON duebook.settlement_entry USING btree (provider_account, batch_ref);

CREATE INDEX settlement_entry_by_payment ON duebook.settlement_entry USING btree (account_id, payment_id) WHERE (account_id IS NOT NULL);

CREATE INDEX settlement_entry_in_suspense ON duebook.settlement_entry USING btree (payment_ref, provider_account) WHERE ((account_id IS NULL) AND ((payment_ref IS NOT NULL) OR (entry_type = ANY (ARRAY['charge'::text, 'refund'::text, 'chargeback'::text, 'chargeback_reversal'::text]))));

CREATE INDEX settlement_entry_in_suspense_by_provider ON duebook.settlement_entry USING btree (provider_payment_ref, provider_account) WHERE ((account_id IS NULL) AND (provider_payment_ref IS NOT NULL));

CREATE INDEX settlement_entry_pending ON duebook.settlement_entry USING btree (provider_account, entry_id) WHERE (entry_status = 'pending'::text);

CREATE INDEX settlement_file_check_failed ON duebook.settlement_file_check USING btree (provider_account, file_id) WHERE (NOT is_ok);

CREATE UNIQUE INDEX settlement_file_counts_once ON duebook.settlement_file USING btree (provider_account, sha256) WHERE (withdrawn_at IS NULL);

ALTER INDEX duebook.settlement_entry_version_pkey ATTACH PARTITION duebook.settlement_entry_version_default_pkey;

GRANT USAGE ON SCHEMA duebook TO duebook_app;
GRANT USAGE ON SCHEMA duebook TO duebook_receiver;
GRANT USAGE ON SCHEMA duebook TO duebook_old_sender;

GRANT USAGE ON SCHEMA duebook_reports TO duebook_app;
GRANT USAGE ON SCHEMA duebook_reports TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.accept_environment(p_name text, p_is_test boolean, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.accept_restore(p_witnessed jsonb, p_is_unwitnessed boolean, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.accept_restore(p_witnessed jsonb, p_is_unwitnessed boolean, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.amount_fault(p_text text, p_exponent smallint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.amount_fault(p_text text, p_exponent smallint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.append_outcomes(p_account_ids text[], p_intent_ids bigint[], p_attempt_nos integer[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.append_outcomes(p_account_ids text[], p_intent_ids bigint[], p_attempt_nos integer[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.append_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.append_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.ask_to_send(p_account_id text, p_operation_key text, p_sender text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.ask_to_send(p_account_id text, p_operation_key text, p_sender text) TO duebook_app;
GRANT ALL ON FUNCTION duebook.ask_to_send(p_account_id text, p_operation_key text, p_sender text) TO duebook_old_sender;

REVOKE ALL ON FUNCTION duebook.audit_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone, p_counts boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.audit_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone, p_counts boolean) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.batch_status(p_difference_minor bigint, p_has_payout boolean, p_is_itemisable boolean, p_is_complete boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.batch_status(p_difference_minor bigint, p_has_payout boolean, p_is_itemisable boolean, p_is_complete boolean) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.cancel_hold(p_account_id text, p_hold text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.cancel_hold(p_account_id text, p_hold text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.cancel_intent(p_account_id text, p_operation_key text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.cancel_intent(p_account_id text, p_operation_key text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.cancel_schedule(p_account_id text, p_schedule text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.cancel_schedule(p_account_id text, p_schedule text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.claim_batch(p_token uuid, p_sender text, p_channel text, p_limit integer, p_lease interval, p_max_age interval, p_safe_retry_for interval, p_due_offset interval, p_alone boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.claim_batch(p_token uuid, p_sender text, p_channel text, p_limit integer, p_lease interval, p_max_age interval, p_safe_retry_for interval, p_due_offset interval, p_alone boolean) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.close_incident(p_name text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.close_incident(p_name text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.cohort_bucket(p_cohort text, p_account_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.cohort_bucket(p_cohort text, p_account_id text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.cohort_of(p_account_id text, p_provider_account text, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.cohort_of(p_account_id text, p_provider_account text, p_at timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.confirm_hold(p_account_id text, p_hold text, p_payment_id text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.confirm_hold(p_account_id text, p_hold text, p_payment_id text, p_by text) TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.budget TO duebook_app;

REVOKE ALL ON FUNCTION duebook.count_tokens(p_budget duebook.budget, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.count_tokens(p_budget duebook.budget, p_at timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.counted_until(p_budget duebook.budget, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.counted_until(p_budget duebook.budget, p_at timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.create_hold(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.create_hold(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.current_ownership(p_account_id text, p_intent_id bigint, p_ownership text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.current_ownership(p_account_id text, p_intent_id bigint, p_ownership text) TO duebook_app;
GRANT ALL ON FUNCTION duebook.current_ownership(p_account_id text, p_intent_id bigint, p_ownership text) TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.deal_with_discrepancy(p_provider_account text, p_kind text, p_subject text, p_act text, p_by text, p_reason text, p_assignee text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.deal_with_discrepancy(p_provider_account text, p_kind text, p_subject text, p_act text, p_by text, p_reason text, p_assignee text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.deciding_mode(p_mode text, p_cohort_mode text, p_notify_from timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.deciding_mode(p_mode text, p_cohort_mode text, p_notify_from timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.delete_webhook_bodies(p_before timestamp with time zone, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.delete_webhook_bodies(p_before timestamp with time zone, p_limit integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.derive_intents() FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.derive_intents() TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.batch TO duebook_app;

REVOKE ALL ON FUNCTION duebook.dismantle_batch(p_batch duebook.batch, p_error text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.dismantle_batch(p_batch duebook.batch, p_error text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.doubt_batches(p_look_up_from timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.doubt_batches(p_look_up_from timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.doubt_lost_intents(p_run_id bigint, p_provider_account text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.doubt_lost_intents(p_run_id bigint, p_provider_account text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.doubt_lost_occurrences(p_account_ids text[], p_schedules text[], p_nominal_ons date[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.doubt_lost_occurrences(p_account_ids text[], p_schedules text[], p_nominal_ons date[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.drop_partitions(p_before timestamp with time zone, p_is_dry_run boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.drop_partitions(p_before timestamp with time zone, p_is_dry_run boolean) TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.hold TO duebook_app;

REVOKE ALL ON FUNCTION duebook.end_hold_expiry(p_hold duebook.hold, p_reason text, p_why text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.end_hold_expiry(p_hold duebook.hold, p_reason text, p_why text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.end_waiting_intents(p_account_ids text[], p_intent_ids bigint[], p_request text, p_reason text, p_why text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.end_waiting_intents(p_account_ids text[], p_intent_ids bigint[], p_request text, p_reason text, p_why text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.environment_refusal(p_name text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.environment_refusal(p_name text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.erase_person(p_account_id text, p_why text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.erase_person(p_account_id text, p_why text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.expire_due(p_most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.expire_due(p_most integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.expire_holds(p_batch duebook.batch, p_from integer, p_upto integer, p_due_offset interval) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.expire_holds(p_batch duebook.batch, p_from integer, p_upto integer, p_due_offset interval) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.expire_one_hold(p_batch duebook.batch, p_position integer, p_due_offset interval) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.expire_one_hold(p_batch duebook.batch, p_position integer, p_due_offset interval) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.fail_over_refused(p_account_ids text[], p_intent_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.fail_over_refused(p_account_ids text[], p_intent_ids bigint[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.find_lost_batches(p_batch_ids bigint[], p_tokens uuid[], p_flush_nos integer[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.find_lost_batches(p_batch_ids bigint[], p_tokens uuid[], p_flush_nos integer[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.find_run_holds(p_run_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.find_run_holds(p_run_id bigint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.finish_internal_batch(p_batch_id bigint, p_token uuid, p_due_offset interval) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.finish_internal_batch(p_batch_id bigint, p_token uuid, p_due_offset interval) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.force_match(p_provider_account text, p_entry_id text, p_account_id text, p_payment_id text, p_by text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.force_match(p_provider_account text, p_entry_id text, p_account_id text, p_payment_id text, p_by text, p_reason text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.has_offset(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.has_offset(p_text text) TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.hold_resource TO duebook_app;

REVOKE ALL ON FUNCTION duebook.has_room(p_resource duebook.hold_resource, p_quantity integer, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.has_room(p_resource duebook.hold_resource, p_quantity integer, p_at timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.hold_edited(p_account_id text, p_schedule text, p_edited_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.hold_edited(p_account_id text, p_schedule text, p_edited_at timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.hold_expiry_key(p_hold text, p_expires_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.hold_expiry_key(p_hold text, p_expires_at timestamp with time zone) TO duebook_app;
GRANT ALL ON FUNCTION duebook.hold_expiry_key(p_hold text, p_expires_at timestamp with time zone) TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.hold_fault(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.hold_fault(p_account_id text, p_hold text, p_expires_at timestamp with time zone, p_for interval, p_resource text, p_quantity integer, p_payment_id text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.hold_state(p_hold duebook.hold, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.hold_state(p_hold duebook.hold, p_at timestamp with time zone) TO duebook_app;
GRANT ALL ON FUNCTION duebook.hold_state(p_hold duebook.hold, p_at timestamp with time zone) TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.incident_fates(p_incident_id bigint, p_as_of timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.incident_fates(p_incident_id bigint, p_as_of timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.incident_policies(p_incident_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.incident_policies(p_incident_id bigint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.incident_report(p_incident_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.incident_report(p_incident_id bigint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.is_in_flight(p_account_id text, p_intent_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.is_in_flight(p_account_id text, p_intent_id bigint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.is_local_time(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.is_local_time(p_text text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.is_poison(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.is_poison(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.is_time(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.is_time(p_text text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.is_zone_name(p_zone text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.is_zone_name(p_zone text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.key_kind(p_operation_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.key_kind(p_operation_key text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.key_part(p_part text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.key_part(p_part text) TO duebook_app;
GRANT ALL ON FUNCTION duebook.key_part(p_part text) TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.lift_suppression(p_account_id text, p_channel text, p_why text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.lift_suppression(p_account_id text, p_channel text, p_why text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.locate_intents(p_account_ids text[], p_intent_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.locate_intents(p_account_ids text[], p_intent_ids bigint[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.lock_hold_resource(p_resource text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.lock_hold_resource(p_resource text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.major_amount(p_minor bigint, p_currency character, p_provider text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.major_amount(p_minor bigint, p_currency character, p_provider text) TO duebook_app;
GRANT ALL ON FUNCTION duebook.major_amount(p_minor bigint, p_currency character, p_provider text) TO duebook_analyst;

REVOKE ALL ON FUNCTION duebook.make_partitions(p_months integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.make_partitions(p_months integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.may_be_claimed(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.may_be_claimed(p_account_id text, p_intent_id bigint, p_kind text, p_claims integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.message_fault(p_message jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.message_fault(p_message jsonb) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.move_attempted(p_batch_id bigint, p_moves jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.move_attempted(p_batch_id bigint, p_moves jsonb) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.move_key(p_account_id text, p_operation_key text, p_ownership text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.move_key(p_account_id text, p_operation_key text, p_ownership text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.name_fault(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.name_fault(p_text text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.note_deliveries(p_channel text, p_failed text[], p_reached text[], p_give_up_after interval) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.note_deliveries(p_channel text, p_failed text[], p_reached text[], p_give_up_after interval) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.observe_webhook(p_endpoint text, p_event_id text, p_body bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.observe_webhook(p_endpoint text, p_event_id text, p_body bytea) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.open_incident(p_name text, p_reason text, p_oldest_due_band interval, p_pauses_sweep boolean, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.open_incident(p_name text, p_reason text, p_oldest_due_band interval, p_pauses_sweep boolean, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.pause_intents(p_scope text, p_name text, p_mode text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.pause_intents(p_scope text, p_name text, p_mode text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.pause_mode(p_account_id text, p_kind text, p_channel text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.pause_mode(p_account_id text, p_kind text, p_channel text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.place_intents(p_account_ids text[], p_intent_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.place_intents(p_account_ids text[], p_intent_ids bigint[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.plain_date(p_text text, p_order text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.plain_date(p_text text, p_order text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.plain_number(p_text text, p_decimal text, p_thousands text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.plain_number(p_text text, p_decimal text, p_thousands text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.promise_hold_expiry(p_hold duebook.hold, p_key text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.promise_hold_expiry(p_hold duebook.hold, p_key text, p_by text) TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.ledger_change TO duebook_app;

REVOKE ALL ON FUNCTION duebook.promise_hold_refund(p_hold duebook.hold, p_payment_id text, p_ownership text, p_change duebook.ledger_change) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.promise_hold_refund(p_hold duebook.hold, p_payment_id text, p_ownership text, p_change duebook.ledger_change) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.put_restored_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_batch_id bigint, p_look_up_from timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.put_restored_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_batch_id bigint, p_look_up_from timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.put_schedule(p_account_id text, p_schedule text, p_kind text, p_frequency text, p_zone text, p_wall_time time without time zone, p_absent text, p_gap text, p_overlap text, p_starts_on date, p_catch_up text, p_catch_up_window interval, p_max_occurrences integer, p_spread_per_minute integer, p_by text, p_weekdays integer[], p_month_day integer, p_nth integer, p_every integer, p_business_shift text, p_holiday_calendar text, p_ends_on date, p_count integer, p_message jsonb, p_channel text, p_replace boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.put_schedule(p_account_id text, p_schedule text, p_kind text, p_frequency text, p_zone text, p_wall_time time without time zone, p_absent text, p_gap text, p_overlap text, p_starts_on date, p_catch_up text, p_catch_up_window interval, p_max_occurrences integer, p_spread_per_minute integer, p_by text, p_weekdays integer[], p_month_day integer, p_nth integer, p_every integer, p_business_shift text, p_holiday_calendar text, p_ends_on date, p_count integer, p_message jsonb, p_channel text, p_replace boolean) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.read_batch_window(p_batch_id bigint, p_from integer, p_upto integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.read_batch_window(p_batch_id bigint, p_from integer, p_upto integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.rebuild_intents(p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.rebuild_intents(p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.rebuild_moving(p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.rebuild_moving(p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.record_delivery_report(p_channel text, p_provider_message_id text, p_status text, p_code text, p_reported_at timestamp with time zone, p_source text, p_suppression text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.record_delivery_report(p_channel text, p_provider_message_id text, p_status text, p_code text, p_reported_at timestamp with time zone, p_source text, p_suppression text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.record_incident_intents(p_incident_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.record_incident_intents(p_incident_id bigint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.record_late_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.record_late_results(p_batch_id bigint, p_flush_no integer, p_results jsonb) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.record_observed_send(p_sender text, p_external_id text, p_account_id text, p_sent_at timestamp with time zone, p_operation_key text, p_kind text, p_payment_id text, p_channel text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.record_observed_send(p_sender text, p_external_id text, p_account_id text, p_sent_at timestamp with time zone, p_operation_key text, p_kind text, p_payment_id text, p_channel text) TO duebook_app;
GRANT ALL ON FUNCTION duebook.record_observed_send(p_sender text, p_external_id text, p_account_id text, p_sent_at timestamp with time zone, p_operation_key text, p_kind text, p_payment_id text, p_channel text) TO duebook_old_sender;

REVOKE ALL ON FUNCTION duebook.record_receipt(p_endpoint text, p_event_id text, p_provider_account text, p_scheme text, p_headers jsonb, p_body bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.record_receipt(p_endpoint text, p_event_id text, p_provider_account text, p_scheme text, p_headers jsonb, p_body bytea) TO duebook_app;
GRANT ALL ON FUNCTION duebook.record_receipt(p_endpoint text, p_event_id text, p_provider_account text, p_scheme text, p_headers jsonb, p_body bytea) TO duebook_receiver;

REVOKE ALL ON FUNCTION duebook.release_batch_from(p_batch_id bigint, p_from integer, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.release_batch_from(p_batch_id bigint, p_from integer, p_reason text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.rescue_batch(p_batch duebook.batch, p_window integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.rescue_batch(p_batch duebook.batch, p_window integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.rescue_batches(p_most integer, p_window integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.rescue_batches(p_most integer, p_window integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.resend_intent(p_account_id text, p_operation_key text, p_reason text, p_by text, p_number integer) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.resend_intent(p_account_id text, p_operation_key text, p_reason text, p_by text, p_number integer) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.resolve_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_accepted boolean, p_not_before timestamp with time zone, p_how text, p_why text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.resolve_in_doubt(p_account_ids text[], p_intent_ids bigint[], p_accepted boolean, p_not_before timestamp with time zone, p_how text, p_why text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.resume_incident(p_name text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.resume_incident(p_name text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.resume_intents(p_scope text, p_name text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.resume_intents(p_scope text, p_name text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.retest_held(p_most integer, p_environment text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.retest_held(p_most integer, p_environment text) TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.schedule TO duebook_app;

REVOKE ALL ON FUNCTION duebook.schedule_fault(p_schedule duebook.schedule) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.schedule_fault(p_schedule duebook.schedule) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.set_aside_due(p_picked tid[], p_batch_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.set_aside_due(p_picked tid[], p_batch_id bigint) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.set_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.set_consent(p_account_id text, p_kind text, p_channel text, p_granted boolean, p_source text, p_decided_at timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.set_hold_resource(p_resource text, p_capacity integer, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.set_hold_resource(p_resource text, p_capacity integer, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.settle_delivery_reports(p_reports bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.settle_delivery_reports(p_reports bigint[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.settle_hold(p_account_id text, p_hold text, p_payment_id text, p_ownership text, p_change duebook.ledger_change, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.settle_hold(p_account_id text, p_hold text, p_payment_id text, p_ownership text, p_change duebook.ledger_change, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.settle_run_holds(p_run_id bigint, p_mode text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.settle_run_holds(p_run_id bigint, p_mode text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.settled_status(p_expected_minor bigint, p_captured_minor bigint, p_refunded_minor bigint, p_charged_back_minor bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.settled_status(p_expected_minor bigint, p_captured_minor bigint, p_refunded_minor bigint, p_charged_back_minor bigint) TO duebook_app;
GRANT ALL ON FUNCTION duebook.settled_status(p_expected_minor bigint, p_captured_minor bigint, p_refunded_minor bigint, p_charged_back_minor bigint) TO duebook_analyst;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.discrepancy TO duebook_app;

REVOKE ALL ON FUNCTION duebook.status_when_found(p_before duebook.discrepancy, p_provider_minor bigint, p_ledger_minor bigint, p_currency character) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.status_when_found(p_before duebook.discrepancy, p_provider_minor bigint, p_ledger_minor bigint, p_currency character) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.suppress(p_account_id text, p_channel text, p_reason text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.suppress(p_account_id text, p_channel text, p_reason text, p_by text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.sweep_paused_by() FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.sweep_paused_by() TO duebook_app;

REVOKE ALL ON FUNCTION duebook.take_catch_up_slots(p_paces text[], p_rates integer[], p_limits timestamp with time zone[], p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.take_catch_up_slots(p_paces text[], p_rates integer[], p_limits timestamp with time zone[], p_now timestamp with time zone) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.take_contact_slots(p_channel text, p_account_ids text[], p_intent_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.take_contact_slots(p_channel text, p_account_ids text[], p_intent_ids bigint[]) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.unmatch(p_provider_account text, p_entry_id text, p_by text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.unmatch(p_provider_account text, p_entry_id text, p_by text, p_reason text) TO duebook_app;

REVOKE ALL ON FUNCTION duebook.unsubscribe(p_account_id text, p_kind text, p_channel text, p_source text) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.unsubscribe(p_account_id text, p_kind text, p_channel text, p_source text) TO duebook_app;
GRANT ALL ON FUNCTION duebook.unsubscribe(p_account_id text, p_kind text, p_channel text, p_source text) TO duebook_receiver;

REVOKE ALL ON FUNCTION duebook.whole_tokens(p_budget duebook.budget, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION duebook.whole_tokens(p_budget duebook.budget, p_at timestamp with time zone) TO duebook_app;

GRANT SELECT ON TABLE duebook.alembic_version TO duebook_app;

GRANT SELECT ON TABLE duebook.applied_object TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.attempt TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.attempt_result TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.audit_event TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.audit_event_audit_event_id_seq TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.batch_batch_id_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.batch_ended TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.calendar_state TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.catch_up_pace TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.channel TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.claim_cursor TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.cohort TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.cohort_cohort_version_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.cohort_member TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.consent TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.contact TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.contact_cap TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.contact_slot TO duebook_app;

GRANT SELECT ON TABLE duebook.currency_exponent TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.delivery_report TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.delivery_report_delivery_report_id_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.digest TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.digest_member TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.discrepancy_event TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.discrepancy_event_event_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.due TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.entry_allocation TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.environment TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.event_effect TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.fail_over TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.failing_contact TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.forced_match TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.held TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.in_doubt TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.incident TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.incident_incident_id_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.incident_intent TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.intent TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.intent_change TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.intent_change_intent_change_id_seq TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.intent_intent_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.intent_kind TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.intent_request TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.intent_request_intent_request_id_seq TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.ledger_change_change_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.ledger_payment TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.observed_send TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.observed_send_observed_send_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.occurrence TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.old_sender TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.outcome TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.ownership_change TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.ownership_change_ownership_change_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.pause TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.pending_event TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.pending_report TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.proposed TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.provider_account TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.quarantined_row TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.quarantined_row_quarantined_row_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.quiet_hours TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.quiet_hours_quiet_hours_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.quiet_hours_statement TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.reconciliation_run TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.reconciliation_run_run_id_seq TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.restore_accepted TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.restore_accepted_restore_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.retired_reference TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.schedule_past TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.sender_key TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settled_position TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_batch TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_entry TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.settlement_entry_version TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_entry_version_default TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.settlement_file TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.settlement_file_check TO duebook_app;

GRANT USAGE ON SEQUENCE duebook.settlement_file_file_id_seq TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.severity_rule TO duebook_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE duebook.suppression TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.webhook_body TO duebook_app;

GRANT SELECT,INSERT ON TABLE duebook.webhook_receipt TO duebook_app;

GRANT SELECT ON TABLE duebook_reports.catch_up_decisions TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.catch_up_decisions TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.delivery_health TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.delivery_health TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.discrepancies TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.discrepancies TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.discrepancy_ageing TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.discrepancy_ageing TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.due_health TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.due_health TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.entry_allocations TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.entry_allocations TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.freshness TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.freshness TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.holds TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.holds TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.intent_timeline TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.intent_timeline TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.intents TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.intents TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.ledger_vs_provider TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.ledger_vs_provider TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.occurrences TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.occurrences TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.outcomes TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.outcomes TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.reconciliation_runs TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.reconciliation_runs TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.rollout_comparison TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.rollout_comparison TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.schedules TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.schedules TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.settlement_batches TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.settlement_batches TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.settlement_entries TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.settlement_entries TO duebook_analyst;

GRANT SELECT ON TABLE duebook_reports.settlement_file_checks TO duebook_app;
GRANT SELECT ON TABLE duebook_reports.settlement_file_checks TO duebook_analyst;
