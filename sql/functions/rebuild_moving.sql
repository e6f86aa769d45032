-- Makes the moving tables again from the facts, where they contradict them. The caller holds the
-- claim's lock on all of them. What stands in exactly one place is believed and left alone, and so
-- is everything that a live batch holds.
--
-- An intent in no place goes where its facts say: its outcome where a result ended it; in doubt
-- where its last attempt may have been tried and has no known end; proposed where it is not owned
-- here; held where its last result says so; else due, with its newest due time and its counts. An
-- intent in several places stays in the one that the facts say, and in doubt if it is there at all.
-- Rows of no intent go. Each change is an audit event; returns them.
create or replace function duebook.rebuild_moving(p_by text)
returns table (account_id text, intent_id bigint, operation_key text, was text[], place text)
language plpgsql
set search_path = ''
as $$
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
comment on function duebook.rebuild_moving(text) is
'Makes the moving tables again from the facts where they contradict them. Returns each intent that moved.';
