-- What became of each intent that an incident noted, as of p_as_of: the one place where it stands,
-- why, and when it goes on or ended.
--
-- place: sent, done, expired (ended, with the outcome's reason); later (due at a later time, with
-- the reason of the change), due (still, past its time), held, in_doubt (with their cause), batch
-- (a sender has it), proposed, nowhere. Every look-up is by key, whatever the statistics say.
create or replace function duebook.incident_fates(
    p_incident_id bigint,
    p_as_of timestamptz
)
returns table (
    account_id text,
    intent_id bigint,
    operation_key text,
    kind text,
    channel text,
    subject text,
    was_due_at timestamptz,
    place text,
    reason text,
    stands_at timestamptz
)
language sql
stable
set search_path = ''
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $$
    select
        n.account_id,
        n.intent_id,
        i.operation_key,
        i.kind,
        i.channel,
        i.subject,
        n.due_at,
        coalesce(
            o.result,
            case
                when d.due_at > p_as_of then 'later'
                when d.due_at is not null then 'due'
                when h.cause is not null then 'held'
                when u.cause is not null then 'in_doubt'
                when p.proposed_at is not null then 'proposed'
                when duebook.is_in_flight(n.account_id, n.intent_id) then 'batch'
                else 'nowhere'
            end
        ),
        coalesce(
            o.reason,
            h.cause,
            u.cause,
            case
                when d.due_at > p_as_of
                    then (
                        select c.reason
                        from duebook.intent_change as c
                        where c.account_id = n.account_id and c.intent_id = n.intent_id
                        order by c.intent_change_id desc
                        limit 1
                    )
            end
        ),
        coalesce(o.ended_at, d.due_at, h.since, u.since, p.proposed_at)
    from duebook.incident_intent as n
    left join lateral (
        select w.*
        from duebook.intent as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as i on true
    left join lateral (
        select w.*
        from duebook.outcome as w
        where w.account_id = i.account_id and w.operation_key = i.operation_key
        limit 1
    ) as o on true
    left join lateral (
        select w.due_at
        from duebook.due as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as d on true
    left join lateral (
        select
            w.cause,
            w.since
        from duebook.held as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as h on true
    left join lateral (
        select
            w.cause,
            w.since
        from duebook.in_doubt as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as u on true
    left join lateral (
        select w.proposed_at
        from duebook.proposed as w
        where w.account_id = n.account_id and w.intent_id = n.intent_id
        limit 1
    ) as p on true
    where n.incident_id = p_incident_id;
$$;
comment on function duebook.incident_fates(bigint, timestamptz) is
'What became of each intent that an incident noted: the place where it stands, why and since when.';
