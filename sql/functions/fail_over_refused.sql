-- Promises refused intents again on the next channel of their kind on which the account can be
-- reached: a contact there, nothing suppressed, no refusal of the topic. The key is the same but
-- for its channel, so that it happens once; the limit in time is the first one's. Returns how many.
create or replace function duebook.fail_over_refused(
    p_account_ids text[],
    p_intent_ids bigint[]
) returns integer
language sql
set search_path = ''
as $$
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
comment on function duebook.fail_over_refused(text[], bigint[]) is
'Promises refused intents again on the next channel of their kind on which the account can be reached. Returns how many.';
