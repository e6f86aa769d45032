-- Cancels a schedule, in the caller's transaction: no occurrence is written any more, those that
-- wait end expired, cancelled, and for those that a sender holds a request is appended, which the
-- gate reads before their window. Returns how many ended and how many were requested; for one that
-- is cancelled already nothing is done. Raises no_data_found for one that is not known.
create or replace function duebook.cancel_schedule(
    p_account_id text,
    p_schedule text,
    p_reason text,
    p_by text
) returns table (cancelled boolean, ended integer, requested integer)
language plpgsql
set search_path = ''
as $$
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
comment on function duebook.cancel_schedule(text, text, text, text) is
'Cancels a schedule: waiting occurrences end expired, cancelled; for those that a sender holds a request is appended.';
