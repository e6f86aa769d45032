-- Moves intents out of a batch to where their results say: due (with an intent_change where its
-- time is a later one), in_doubt, held or proposed. Part of the flush that wrote the results.
--
-- p_moves is an array of {account_id, intent_id, attempt_no, place, due_at, reason, detail, burns,
-- look_up_from, retest_at, is_repeat}; due_at null keeps the due time. An intent that stands
-- elsewhere already is left there. A repeat may have been accepted: it is due only where it can be
-- sent again before its channel forgets the first try, else in doubt. One that an earlier attempt
-- is known to have sent, by an answer that came late, neither waits nor is in doubt: it is due, and
-- the next window's gate takes that answer over.
create or replace function duebook.move_attempted(p_batch_id bigint, p_moves jsonb)
returns void
language sql
set search_path = ''
as $$
    with moved as materialized (
        select
            m.account_id,
            m.intent_id,
            m.attempt_no,
            m.due_at,
            m.reason,
            m.detail,
            m.look_up_from,
            m.retest_at,
            m.is_repeat,
            case
                when
                    m.place in ('in_doubt', 'held')
                    and m.attempt_no > 1
                    and exists (
                        select
                        from duebook.attempt_result as r
                        where
                            r.account_id = m.account_id
                            and r.intent_id = m.intent_id
                            and r.attempt_no < m.attempt_no
                            and r.result = 'sent'
                    ) then 'due'
                when
                    m.is_repeat
                    and coalesce(a.safe_retry_until, b.safe_retry_until) > m.due_at is not true
                    then 'in_doubt'
                else m.place
            end as place,
            a.due_at as was_due_at,
            i.kind,
            i.channel,
            i.give_up_at,
            a.tries + m.burns::integer as new_tries,
            case when m.reason = 'released' then a.suspicions else 0 end as new_suspicions,
            case
                when m.is_repeat then coalesce(a.safe_retry_until, b.safe_retry_until)
                else a.safe_retry_until
            end as safe_retry_until
        from pg_catalog.jsonb_to_recordset(p_moves) as m (
            account_id text, intent_id bigint, attempt_no integer, place text,
            due_at timestamptz, reason text, detail text, burns boolean,
            look_up_from timestamptz, retest_at timestamptz, is_repeat boolean
        )
        inner join duebook.attempt as a
            on
                m.account_id = a.account_id
                and m.intent_id = a.intent_id
                and m.attempt_no = a.attempt_no
        inner join duebook.intent as i
            on m.account_id = i.account_id and m.intent_id = i.intent_id
        left join duebook.batch as b on b.batch_id = p_batch_id
    ),
    changed as (
        insert into duebook.intent_change (account_id, intent_id, due_at, reason)
        select
            m.account_id, m.intent_id, m.due_at, case when m.is_repeat then 'repeat' else m.reason end
        from moved as m
        where m.place = 'due' and m.due_at is not null
    ),
    due as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            m.account_id, m.intent_id, coalesce(m.due_at, m.was_due_at), m.kind, m.channel,
            m.give_up_at, m.new_tries, m.attempt_no, m.new_suspicions, m.safe_retry_until
        from moved as m
        where m.place = 'due'
        order by m.account_id, m.intent_id
        on conflict do nothing
    ),
    in_doubt as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            m.account_id, m.intent_id, m.attempt_no, p_batch_id, m.reason, m.was_due_at, m.kind,
            m.channel, m.give_up_at, m.new_tries, m.attempt_no,
            coalesce(m.look_up_from, pg_catalog.clock_timestamp())
        from moved as m
        where m.place = 'in_doubt'
        order by m.account_id, m.intent_id
        on conflict do nothing
    ),
    held as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, safe_retry_until, detail, retest_at
        )
        select
            m.account_id, m.intent_id, m.reason, m.was_due_at, m.kind, m.channel, m.give_up_at,
            m.new_tries, m.attempt_no, m.safe_retry_until, m.detail,
            -- Not later than its limit, at which it ends.
            least(coalesce(m.retest_at, pg_catalog.clock_timestamp()), m.give_up_at)
        from moved as m
        where m.place = 'held'
        order by m.account_id, m.intent_id
        on conflict do nothing
    )
    insert into duebook.proposed (account_id, intent_id)
    select m.account_id, m.intent_id
    from moved as m
    where m.place = 'proposed'
    order by m.account_id, m.intent_id
    on conflict do nothing;
$$;
comment on function duebook.move_attempted(bigint, jsonb) is
'Moves intents out of a batch to where their results say: due, in_doubt, held or proposed.';
