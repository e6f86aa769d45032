-- Accepts a database that is behind its witness. p_witnessed are the objects of the witness that
-- the database does not know; the caller has locked the moving tables.
--
-- Put in doubt is what may have been sent since the point of the restore: what is due by now (sent
-- by a claim that was lost), what is held and was due (its cause may have cleared), and what stands
-- in any batch without a result. Internal acts are left: they may be done again. Where runs were
-- lost, doubt_lost_intents() goes on with what the next runs promise again. p_is_unwitnessed: no
-- witness says what was lost, a person does; then every provider account may have lost runs.
create or replace function duebook.accept_restore(
    p_witnessed jsonb,
    p_is_unwitnessed boolean,
    p_by text
) returns table (
    restore_id bigint,
    from_due integer,
    from_held integer,
    from_batches integer,
    lost_provider_accounts text[],
    intents_were_lost boolean
)
language plpgsql
set search_path = ''
as $$
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
comment on function duebook.accept_restore(jsonb, boolean, text) is
'Accepts a database that is behind its witness: what may have been sent since the restore is put in doubt.';
