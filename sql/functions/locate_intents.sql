-- Where intents that have not ended stand by their facts alone, and what their row there holds.
--
-- What counts is the last attempt. Without a result it may have been tried, unless its batch was
-- rescued before its turn came; then the intent is in doubt, but for a channel that recognises the
-- repeat. What was in doubt or held went back to due where a change of its due time followed: a
-- person or a look-up said that it was not sent, its cause had cleared, or the channel recognises
-- the repeat (then the change says so, and until when it does is kept).
create or replace function duebook.locate_intents(p_account_ids text[], p_intent_ids bigint[])
returns table (
    account_id text,
    intent_id bigint,
    place text,
    cause text,
    due_at timestamptz,
    kind text,
    channel text,
    give_up_at timestamptz,
    tries smallint,
    claims integer,
    suspicions smallint,
    safe_retry_until timestamptz,
    batch_id bigint
)
language sql
stable
set search_path = ''
as $$
    with fact as (
        select
            i.account_id,
            i.intent_id,
            duebook.current_ownership(i.account_id, i.intent_id, i.ownership) as ownership,
            i.kind,
            i.channel,
            i.give_up_at,
            a.attempt_no,
            a.batch_id,
            a.suspicions,
            a.safe_retry_until,
            coalesce(
                case when x.changed_at >= a.claimed_at then x.due_at end,
                a.due_at, x.due_at, i.notify_at
            ) as due_at,
            coalesce(a.tries, 0)
            + coalesce(
                r.result = 'failed' or (r.result = 'unknown' and x.reason = 'repeat'), false
            )::integer as tries,
            r.result,
            r.reason,
            r.finished_at,
            x.reason not in ('edited', 'tzdb')
            and x.changed_at >= coalesce(r.finished_at, a.claimed_at) as is_back,
            a.position >= e.untried_from as is_untried,
            e.sender = 'restore accept' or e.how = 'dismantled' as is_restored,
            coalesce(
                a.safe_retry_until, e.safe_retry_until,
                case when x.reason = 'repeat' then b.safe_retry_until end
            ) as repeat_until,
            x.reason = 'repeat' as is_repeat,
            a.attempt_no is null and exists (
                select
                from duebook.occurrence as c
                where
                    c.account_id = i.account_id
                    and c.intent_id = i.intent_id
                    and c.case_of = 'unknown_zone'
            ) as is_zone_unknown
        from unnest(p_account_ids, p_intent_ids) as g (account_id, intent_id)
        inner join duebook.intent as i on g.account_id = i.account_id and g.intent_id = i.intent_id
        left join lateral (
            select t.*
            from duebook.attempt as t
            where t.account_id = i.account_id and t.intent_id = i.intent_id
            order by t.attempt_no desc
            limit 1
        ) as a on true
        left join duebook.attempt_result as r
            on
                a.account_id = r.account_id
                and a.intent_id = r.intent_id
                and a.attempt_no = r.attempt_no
        left join duebook.batch_ended as e on a.batch_id = e.batch_id
        left join duebook.batch as b on a.batch_id = b.batch_id
        left join lateral (
            select n.due_at, n.reason, n.changed_at
            from duebook.intent_change as n
            where n.account_id = i.account_id and n.intent_id = i.intent_id
            order by n.intent_change_id desc
            limit 1
        ) as x on true
    ),
    placed as (
        select
            f.*,
            case
                when
                    f.attempt_no is not null
                    and f.result is null
                    and f.is_untried is not true
                    and f.is_back is not true
                    and (
                        f.repeat_until is null
                        or f.repeat_until <= pg_catalog.clock_timestamp()
                    ) then 'in_doubt'
                when f.result = 'unknown' and f.is_back is not true then 'in_doubt'
                when f.ownership <> 'live' then 'proposed'
                when f.result = 'held' and f.is_back is not true then 'held'
                when f.is_zone_unknown then 'held'
                else 'due'
            end as place
        from fact as f
    )
    select
        p.account_id,
        p.intent_id,
        p.place,
        case
            when p.place = 'held' then coalesce(p.reason, 'zone_unknown')
            when p.result = 'unknown' then coalesce(p.reason, 'unknown')
            when p.is_restored then 'restored'
            when p.repeat_until is not null then 'retry_unsafe'
            else 'sender_died'
        end,
        p.due_at,
        p.kind,
        p.channel,
        p.give_up_at,
        p.tries::smallint,
        coalesce(p.attempt_no, 0),
        case
            when p.attempt_no is null then 0
            when p.result is null then p.suspicions + 1
            when p.result = 'skipped' then p.suspicions
            else 0
        end::smallint,
        case
            when p.result is null and p.is_untried is not true then p.repeat_until
            when p.result = 'unknown' and p.is_repeat then p.repeat_until
            else p.safe_retry_until
        end,
        p.batch_id
    from placed as p;
$$;
comment on function duebook.locate_intents(text[], bigint[]) is
'Where intents that have not ended stand by their facts alone, with what their row there holds.';
