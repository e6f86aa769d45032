-- Takes out of the database what says who an account is: addresses, the texts of its schedules, raw
-- rows of providers about its payments, and rows of its own in quarantine. What was promised, sent
-- and settled stays, under the account's id. What waits ends cancelled, and its schedules with it;
-- for what a sender holds a request is appended. Raw bodies of webhooks go by their retention.
--
-- As the owner of the tables, since evidence is append-only for the application. Again it finds
-- nothing. Returns how many of each.
create or replace function duebook.erase_person(
    p_account_id text,
    p_why text,
    p_by text
) returns table (what text, rows_erased bigint)
language plpgsql
security definer
set search_path = ''
as $$
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
comment on function duebook.erase_person(text, text, text) is
'Takes out of the database what says who an account is; what was promised, sent and settled stays. Returns how many of each.';
