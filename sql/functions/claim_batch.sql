-- Claims up to p_limit due intents of one channel for one sender: due -> batch, one attempt each.
--
-- Fair: a quota pass visits accounts after the last one served, by a loose index scan that looks at
-- no more than 1,000 of them; a fill pass takes the rest in due order. A backlog that fits into the
-- batch needs no fairness and skips the first pass. A budget gives at most the tokens it has, and
-- where it is paced a slot in time for each message. After a pause one message goes first.
-- Notices that go in one message are claimed together, also those that are due a little later.
-- While an incident pauses the sweeps it claims nothing.
-- Rows whose attempt can't be inserted are set aside (see set_aside_due) and never stop a claim.
-- The settings pin the plan: every access is by index, whatever the statistics say.
create or replace function duebook.claim_batch(
    p_token uuid,
    p_sender text,
    p_channel text,
    p_limit integer,
    p_lease interval,
    p_max_age interval,
    p_safe_retry_for interval,
    p_due_offset interval,
    p_alone boolean
) returns table (batch_id bigint, size integer, set_aside integer)
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
comment on function duebook.claim_batch(
    uuid, text, text, integer, interval, interval, interval, interval, boolean
) is
'Claims up to p_limit due intents of one channel: due to batch, one attempt each. batch_id is null when nothing was claimed.';
