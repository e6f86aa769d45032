-- Ends every live batch of a restored database: its senders went on, or died, in another history.
-- What has no result may have been sent and is in doubt; internal acts go back to due. Returns how
-- many were put in doubt.
create or replace function duebook.doubt_batches(p_look_up_from timestamptz) returns integer
language sql
set search_path = ''
as $$
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
comment on function duebook.doubt_batches(timestamptz) is
'Ends every live batch of a restored database; what has no result is put in doubt. Returns how many.';
