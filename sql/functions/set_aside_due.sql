-- What becomes of picked due rows that got no attempt in batch p_batch_id (the claim deletes them):
-- poison and conflicts go to held, with their cause; a row whose key has an outcome, or whose
-- intent stands elsewhere already, is a duplicate and only noted. Returns how many there were.
create or replace function duebook.set_aside_due(p_picked tid[], p_batch_id bigint)
returns integer
language sql
set search_path = ''
as $$
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
comment on function duebook.set_aside_due(tid[], bigint) is
'Puts picked due rows that got no attempt into held with their cause, or notes that they were duplicates. Returns how many.';
