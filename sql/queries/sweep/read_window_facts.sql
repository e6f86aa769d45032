-- name: read_window_facts
-- The gate's facts for the positions [window_start, mark) of a batch, in their order, as of now.
--
-- "Still wanted" is read from the books, not from the intent: a payment said to be missing whose
-- absence was cleared or that was voided. The newest decision about consent counts, of two at once
-- the refusal.
--
-- Every look-up is a correlated subquery with a limit, which no planner can turn into a join that
-- reads a whole table: the plan is made once a session, often while the tables are still empty.
-- What only a missed intent needs is in read_missed_facts.
select
    w.batch_position,
    w.account_id,
    w.intent_id,
    w.attempt_no,
    i.operation_key,
    i.kind,
    i.payment_id,
    coalesce((
        select m.ownership
        from duebook.ownership_change as m
        where m.account_id = w.account_id and m.intent_id = w.intent_id
        order by m.ownership_change_id desc
        limit 1
    ), i.ownership) as ownership,
    i.intended_local,
    i.zone,
    i.give_up_at,
    w.due_at,
    -- A first attempt has no history.
    case
        when w.attempt_no = 1 then 0::smallint
        else (
            select a.tries
            from duebook.attempt as a
            where
                a.account_id = w.account_id
                and a.intent_id = w.intent_id
                and a.attempt_no = w.attempt_no
        )
    end as tries,
    case
        when w.attempt_no > 1
            then (
                select a.safe_retry_until
                from duebook.attempt as a
                where
                    a.account_id = w.account_id
                    and a.intent_id = w.intent_id
                    and a.attempt_no = w.attempt_no
            )
    end as safe_retry_until,
    c.address,
    c.zone as recipient_zone,
    c.region,
    coalesce((
        select true
        from duebook.outcome as o
        where o.account_id = i.account_id and o.operation_key = i.operation_key
        limit 1
    ), false) as has_outcome,
    (
        select s.reason
        from duebook.suppression as s
        where s.account_id = i.account_id and s.channel = i.channel
        limit 1
    ) as suppression_reason,
    (
        select array_agg(q.request)
        from duebook.intent_request as q
        where q.account_id = w.account_id and q.intent_id = w.intent_id
    ) as requests,
    coalesce(not (
        select n.granted
        from duebook.consent as n
        where
            n.account_id = w.account_id
            and n.kind in (i.kind, '*')
            and n.channel in (i.channel, '*')
        order by n.decided_at desc, n.granted asc
        limit 1
    ), false) as is_consent_refused,
    case
        when i.kind = 'payment_missing'
            then
                exists (
                    select
                    from duebook.ledger_change as l
                    where
                        l.account_id = i.account_id
                        and l.payment_id = i.payment_id
                        and l.change_id > i.change_id
                        and l.change_kind = 'cleared'
                )
                or exists (
                    select
                    from duebook.ledger_payment as p
                    where
                        p.account_id = i.account_id
                        and p.payment_id = i.payment_id
                        and p.is_void
                )
        else false
    end as is_settled_meanwhile,
    case
        when w.attempt_no = 1 then false
        else exists (
            select
            from duebook.attempt as e
            inner join duebook.batch as other on e.batch_id = other.batch_id
            where
                e.account_id = w.account_id
                and e.intent_id = w.intent_id
                and e.batch_id < w.batch_id
                and not exists (
                    select
                    from duebook.attempt_result as r
                    where
                        r.account_id = e.account_id
                        and r.intent_id = e.intent_id
                        and r.attempt_no = e.attempt_no
                )
        )
    end as is_claimed_elsewhere,
    case
        when w.attempt_no = 1 then null
        else (
            select r.attempt_no
            from duebook.attempt_result as r
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.result = 'sent'
            order by r.attempt_no
            limit 1
        )
    end as sent_attempt_no,
    -- Put off to the end of quiet hours while it was being caught up: it still keeps the pace.
    case
        when w.attempt_no = 1 then false
        else exists (
            select
            from duebook.attempt_result as r
            inner join duebook.attempt as e
                on
                    r.account_id = e.account_id
                    and r.intent_id = e.intent_id
                    and r.attempt_no = e.attempt_no
            where
                r.account_id = w.account_id
                and r.intent_id = w.intent_id
                and r.attempt_no = w.attempt_no - 1
                and r.result = 'deferred'
                and r.reason = 'quiet_hours'
                and (
                    e.claimed_at - e.due_at > interval '2 minutes'
                    or exists (
                        select
                        from duebook.intent_change as c
                        where
                            c.account_id = w.account_id
                            and c.intent_id = w.intent_id
                            and c.due_at = e.due_at
                            and c.reason = 'spread'
                    )
                )
        )
    end as is_catching_up
from
    duebook.read_batch_window(
        :batch_id::bigint, :window_start::integer, :mark::integer
    ) as w
left join lateral (
    select n.*
    from duebook.intent as n
    where n.account_id = w.account_id and n.intent_id = w.intent_id
    limit 1
) as i on true
left join lateral (
    select
        n.address,
        n.zone,
        n.region
    from duebook.contact as n
    where n.account_id = i.account_id and n.channel = i.channel
    limit 1
) as c on true
order by w.batch_position;
