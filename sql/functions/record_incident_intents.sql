-- Notes what is past its due time and has not ended: due, held, or in a batch without its result.
-- What is noted already keeps its first due time. Returns how many were new.
create or replace function duebook.record_incident_intents(p_incident_id bigint) returns bigint
language sql
set search_path = ''
as $$
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
comment on function duebook.record_incident_intents(bigint) is
'Notes what is past its due time and has not ended, for an incident. Returns how many were new.';
