-- name: list_story_intents
-- Intents of the payments, or some by themselves, with the one place where each stands and with
-- what its wait depends on. An intent in no place at all is `lost`: `check` reports it too.
select
    i.account_id,
    i.payment_id,
    i.intent_id,
    i.operation_key,
    i.kind,
    i.channel,
    i.subject,
    i.notify_at,
    i.give_up_at,
    duebook.current_ownership(i.account_id, i.intent_id, i.ownership) as ownership,
    e.cohort,
    e.cohort_version,
    q.sender as told_by,
    q.sent_at as told_at,
    i.provider_account,
    i.run_id,
    i.change_id,
    i.intended_local,
    i.zone,
    i.created_at,
    k.notify_after,
    k.enabled as is_kind_enabled,
    v.state,
    v.due_at,
    v.reason,
    h.detail,
    v.since,
    v.tries,
    v.claims,
    h.retest_at,
    u.look_up_from,
    o.ended_at,
    o.attempt_no as ending_attempt_no,
    o.provider_message_id,
    b.sender,
    b.lease_until,
    f.claimed_at as first_claimed_at,
    z.detail as catch_up,
    y.detail as resolution,
    g.paused_until,
    g.pause_reason,
    coalesce(n.enabled, true) as is_channel_enabled,
    exists(
        select 1 from duebook.contact as c
        where c.account_id = i.account_id and c.channel = i.channel
    ) as has_contact,
    exists(
        select 1 from duebook.suppression as x
        where x.account_id = i.account_id and x.channel = i.channel
    ) as is_suppressed
from duebook.intent as i
inner join duebook_reports.intents as v
    on i.account_id = v.account_id and i.intent_id = v.intent_id
left outer join duebook.intent_kind as k on i.kind = k.kind
left outer join duebook.outcome as o
    on i.account_id = o.account_id and i.operation_key = o.operation_key
left outer join duebook.held as h on i.account_id = h.account_id and i.intent_id = h.intent_id
left outer join duebook.in_doubt as u on i.account_id = u.account_id and i.intent_id = u.intent_id
left outer join lateral (
    select t.batch_id
    from duebook.attempt as t
    where t.account_id = i.account_id and t.intent_id = i.intent_id
    order by t.attempt_no desc
    limit 1
) as a on true
left outer join duebook.batch as b on a.batch_id = b.batch_id
left outer join lateral (
    select t.claimed_at
    from duebook.attempt as t
    where t.account_id = i.account_id and t.intent_id = i.intent_id
    order by t.attempt_no
    limit 1
) as f on true
left outer join lateral (
    -- Not by order and limit, which could be planned as a walk through everybody's.
    select (array_agg(e.detail order by e.audit_event_id desc))[1] as detail
    from duebook.audit_event as e
    where
        e.account_id = i.account_id
        and e.subject = i.operation_key
        and e.action = 'catch_up'
) as z on true
left outer join lateral (
    select
        (
            array_agg(
                jsonb_build_object('by', e.actor) || e.detail order by e.audit_event_id desc
            )
        )[1] as detail
    from duebook.audit_event as e
    where
        e.account_id = i.account_id
        and e.subject = i.operation_key
        and e.action = 'resolve_in_doubt'
) as y on true
left outer join duebook.cohort as e on i.cohort_version = e.cohort_version
left outer join lateral (
    select
        s.sender,
        s.sent_at
    from duebook.observed_send as s
    where s.account_id = i.account_id and s.operation_key = i.operation_key
    order by s.source <> 'asked' desc, s.observed_send_id
    limit 1
) as q on true
left outer join duebook.budget as g on i.channel = g.channel
left outer join duebook.channel as n on i.channel = n.channel
where
    i.account_id = :account_id
    and (i.subject = any(:subjects::text[]) or i.intent_id = any(:intent_ids::bigint[]))
order by i.intent_id
limit :row_limit::bigint;
