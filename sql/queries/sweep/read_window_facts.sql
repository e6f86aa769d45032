-- name: read_window_facts
-- The gate's facts for the positions [window_start, mark) of a batch, in their order, as of now.
--
-- "Still wanted" is read from the books, not from the intent: a payment said to be missing whose
-- absence was cleared or that was voided. The newest decision about consent counts, of two at once
-- the refusal.
select
    w.batch_position,
    a.account_id,
    a.intent_id,
    a.attempt_no,
    i.operation_key,
    i.kind,
    i.payment_id,
    i.change_id,
    i.ownership,
    i.intended_local,
    i.zone,
    i.give_up_at,
    a.due_at,
    a.tries,
    a.safe_retry_until,
    c.address,
    c.zone as recipient_zone,
    c.region,
    (o.account_id is not null) as has_outcome,
    s.reason as suppression_reason,
    (
        select array_agg(q.request)
        from duebook.intent_request as q
        where q.account_id = a.account_id and q.intent_id = a.intent_id
    ) as requests,
    coalesce(not (
        select n.granted
        from duebook.consent as n
        where
            n.account_id = a.account_id
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
        when a.due_at > statement_timestamp() - interval '2 minutes' then 0
        else (
            select count(*)
            from duebook.intent as newer
            where
                newer.account_id = i.account_id
                and newer.subject = i.subject
                and newer.kind = i.kind
                and newer.ownership = 'live'
                and newer.notify_at <= statement_timestamp()
                and (newer.notify_at, newer.intent_id) > (i.notify_at, i.intent_id)
        )
    end as newer_due,
    case
        when a.attempt_no = 1 then false
        else exists (
            select
            from duebook.attempt as e
            inner join duebook.batch as other on e.batch_id = other.batch_id
            where
                e.account_id = a.account_id
                and e.intent_id = a.intent_id
                and e.batch_id < a.batch_id
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
        when a.attempt_no = 1 then null
        else (
            select r.attempt_no
            from duebook.attempt_result as r
            where
                r.account_id = a.account_id
                and r.intent_id = a.intent_id
                and r.result = 'sent'
            order by r.attempt_no
            limit 1
        )
    end as sent_attempt_no
from
    duebook.read_batch_window(
        :batch_id::bigint, :window_start::integer, :mark::integer
    ) as w
inner join duebook.attempt as a
    on
        w.account_id = a.account_id
        and w.intent_id = a.intent_id
        and w.attempt_no = a.attempt_no
left join duebook.intent as i on a.account_id = i.account_id and a.intent_id = i.intent_id
left join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
left join duebook.suppression as s on i.account_id = s.account_id and i.channel = s.channel
left join duebook.contact as c on i.account_id = c.account_id and i.channel = c.channel
order by w.batch_position;
