-- Makes intents again that follow from the facts and are not there, and takes away those of a
-- ledger change that is not theirs. What was ever tried, or has ended, is not touched: a key with
-- an outcome is not made again, nor is any of an account with an attempt whose intent is gone,
-- since it may be the one that was sent. A key that an old sender took comes back as a proposal.
-- Each is an audit event with the whole row; rebuild_moving() gives it a place. Returns them.
create or replace function duebook.rebuild_intents(p_by text)
returns table (account_id text, operation_key text, done text)
language plpgsql
set search_path = ''
as $$
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
comment on function duebook.rebuild_intents(text) is
'Makes intents again that follow from the facts and are not there, and takes away those that follow from none. Returns them.';
